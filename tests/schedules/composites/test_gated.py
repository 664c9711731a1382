"""activation(dense(x)) * dense(x) is one kernel, and what only looks like it is not."""

import numpy as np
import pytest

import selfbyoc
from selfbyoc import op
from selfbyoc.tvm import GENERATION

X, UNITS = (3, 70), 37
WEIGHT = (UNITS, X[-1]), "float32"
TYPES = {"x": (X, "float32"), "gate": WEIGHT, "up": WEIGHT}
ACTIVATIONS = {
    "silu": lambda x: x / (1 + np.exp(-x)),
    "gelu_tanh": lambda x: x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))) / 2,
}


def arrays(types, seed=0):
    rng = np.random.default_rng(seed)
    return {
        name: (rng.standard_normal(shape) / np.sqrt(shape[-1])).astype(dtype)
        for name, (shape, dtype) in types.items()
    }


def built(program, types=None, **how):
    given = arrays(TYPES if types is None else types)
    weights = {name: array for name, array in given.items() if name not in ("x", "other")}
    mod = selfbyoc.emit(program, TYPES if types is None else types, weights)
    inputs = [array for name, array in given.items() if name not in weights]
    library = selfbyoc.build(mod, **how)
    return library, library(*inputs)[0], given


@pytest.mark.parametrize("kind", sorted(ACTIVATIONS))
@pytest.mark.parametrize("is_turned", [False, True])
def test_one_kernel(kind, is_turned):
    def program(x, gate, up):
        both = [getattr(op, kind)(op.dense(x, gate)), op.dense(x, up)]
        return op.multiply(*(both[::-1] if is_turned else both))

    library, found, given = built(program)
    assert library.report.counts == {"gated_dense": 1}
    assert not library.report.left
    x, gate, up = (given[name].astype("float64") for name in TYPES)
    wanted = ACTIVATIONS[kind](x @ gate.T) * (x @ up.T)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("weights", ["float16", "bfloat16", "int8", "int4"])
def test_held_in_fewer_bits(weights):
    if weights == "bfloat16" and GENERATION == "relay":
        pytest.skip("bfloat16 needs Relax")
    how = {"activations": "int8", "symmetric": True} if weights.startswith("int") else {}
    library, found, given = built(plain, weights=weights, **how)
    name = "gated_few_bits" if how else "gated_dense"
    assert library.report.counts == {name: 1}
    x, gate, up = (given[each].astype("float64") for each in TYPES)
    wanted = ACTIVATIONS["silu"](x @ gate.T) * (x @ up.T)
    scale = {"float16": 1e-3, "bfloat16": 2e-2, "int8": 3e-2, "int4": 0.3}[weights]
    assert np.abs(found - wanted).max() < scale * np.abs(wanted).max()


def plain(x, gate, up):
    return op.multiply(op.silu(op.dense(x, gate)), op.dense(x, up))


def another_input(x, other, gate, up):
    return op.multiply(op.silu(op.dense(x, gate)), op.dense(other, up))


def gate_read_twice(x, gate, up):
    gated = op.silu(op.dense(x, gate))
    return op.add(op.multiply(gated, op.dense(x, up)), gated)


def one_unit(x, gate, up):
    return op.multiply(op.silu(op.dense(x, gate)), op.dense(x, up))


@pytest.mark.parametrize(
    ("program", "changed"),
    [
        (another_input, {"other": (X, "float32")}),
        (gate_read_twice, {}),
        (one_unit, {"gate": ((1, X[-1]), "float32")}),
    ],
)
def test_what_is_another_thing(program, changed):
    types = {**TYPES, **changed}
    order = ["x", *(["other"] if "other" in types else []), "gate", "up"]
    library, found, given = built(program, {name: types[name] for name in order})
    assert "gated_dense" not in library.report.counts
    x, gate, up = (given[name].astype("float64") for name in TYPES)
    gated = ACTIVATIONS["silu"](x @ gate.T)
    wanted = gated * (given.get("other", x).astype("float64") @ up.T)
    wanted = wanted + gated if program is gate_read_twice else wanted
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
