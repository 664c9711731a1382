"""Batch norms and concatenations that no composite takes."""

import numpy as np
import pytest
from tvm import relax, tirx

import selfbyoc
from selfbyoc.runtime.relax.norms import norms_are_scales
from selfbyoc.runtime.relax.rest import ScheduleRest
from selfbyoc.runtime.tolerance import tolerance

C = 7


def statistics():
    rng = np.random.default_rng(3)
    gamma, beta, mean = rng.standard_normal((3, C)).astype("float32")
    return gamma, beta, mean, np.abs(rng.standard_normal(C)).astype("float32") + np.float32(0.1)


def normed(shape=(2, C, 3, 5), axis=1, dtype="float32", inputs=0, **attrs):
    """main: relu of a batch norm; the last `inputs` statistics are inputs."""
    x = relax.Var("x", relax.TensorType(shape, dtype))
    given = [relax.Var(f"s{n}", relax.TensorType((C,), dtype)) for n in range(inputs)]
    known = [relax.const(a.astype(dtype)) for a in statistics()[: 4 - inputs]]
    builder = relax.BlockBuilder()
    with builder.function("main", [x, *given]):
        with builder.dataflow():
            attrs = {"training": False, **attrs}
            normal = builder.emit(relax.op.nn.batch_norm(x, *known, *given, axis=axis, **attrs))
            out = builder.emit_output(relax.op.nn.relu(builder.emit(normal[0])))
        builder.emit_func_output(out)
    return builder.get()


def ops(mod):
    values = [b.value for block in mod["main"].body.blocks for b in block.bindings]
    return [v.op.name for v in values if isinstance(v, relax.Call)]


@pytest.mark.parametrize("axis", [1, 3, -1])
@pytest.mark.parametrize("attrs", [{}, {"center": False}, {"scale": False}, {"epsilon": 0.1}])
def test_a_norm_of_constants_is_a_product_and_a_sum(axis, attrs):
    shape = tuple(C if n == axis % 4 else n + 2 for n in range(4))
    mod = normed(shape, axis, **attrs)
    assert ops(norms_are_scales(mod)) == ["relax.multiply", "relax.add", "relax.nn.relu"]
    x = np.random.default_rng(0).standard_normal(shape).astype("float32")
    column = tuple(C if n == axis % 4 else 1 for n in range(4))
    gamma, beta, mean, variance = (a.astype("float64").reshape(column) for a in statistics())
    gamma, beta = gamma * attrs.get("scale", True), beta * attrs.get("center", True)
    gamma = gamma if attrs.get("scale", True) else 1
    found = selfbyoc.build(mod, composites=[])(x)[0]
    wanted = (x - mean) / np.sqrt(variance + attrs.get("epsilon", 1e-5)) * gamma + beta
    wanted = np.maximum(wanted, 0)
    bound = tolerance("float32", 1) * np.abs(wanted).max()
    np.testing.assert_allclose(found, wanted, rtol=0, atol=bound)


@pytest.mark.parametrize("changed", [{"dtype": "float16"}, {"training": True}, {"inputs": 1}])
def test_other_norms_stay_as_they_are(changed):
    assert "relax.nn.batch_norm" in ops(norms_are_scales(normed(**changed)))


def joined(width):
    """silu(concatenate) of channels of `width` pixels."""
    parts = [relax.Var(f"x{n}", relax.TensorType((1, 3, width), "float32")) for n in range(3)]
    builder = relax.BlockBuilder()
    with builder.function("main", parts):
        with builder.dataflow():
            out = builder.emit_output(relax.op.nn.silu(builder.emit(relax.op.concat(parts, 1))))
        builder.emit_func_output(out)
    return builder.get()


@pytest.mark.parametrize(("width", "functions"), [(4, 2), (65, 1)])
def test_runs_shorter_than_a_vector_are_joined_first(width, functions):
    target = selfbyoc.host_target()
    done = ScheduleRest(target)(joined(width))
    assert sum(isinstance(f, tirx.PrimFunc) for f in done.functions.values()) == functions
    rng = np.random.default_rng(0)
    parts = [rng.standard_normal((1, 3, width)).astype("float32") for _ in range(3)]
    whole = np.concatenate(parts, 1).astype("float64")
    found = selfbyoc.build(joined(width), target)(*parts)[0]
    np.testing.assert_allclose(found, whole / (1 + np.exp(-whole)), rtol=0, atol=2e-6)
