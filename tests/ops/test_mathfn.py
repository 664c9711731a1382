"""exp, log, erf, sigmoid, tanh, gelu and round over the whole of float32, scalar and vectorised."""

import math

import numpy as np
import pytest

from selfbyoc.codegen.target import host_target
from selfbyoc.ops import mathfn, rounded
from selfbyoc.tvm import Schedule, child_blocks, get_func, make_target, te, tensor, tvm
from selfbyoc.tvm.build import build_module

MAX = float(np.finfo(np.float32).max)
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, MAX, -MAX, 1e-45, -1e-45], "float32")


def _every_magnitude():
    """Both signs of 2^-149 ... 2^127, dense up to 100, in whole vectors."""
    wide = np.exp2(np.linspace(-149, 127.99, 5000))
    dense = np.linspace(0, 100, 20000)
    both = np.concatenate([wide, -wide, dense, -dense])
    return np.concatenate([both, SPECIAL, np.ones(-(len(both) + len(SPECIAL)) % 16)]).astype(
        "float32"
    )


X = _every_magnitude()


def run(function, values, lanes=1):
    """`function` on each element, in a kernel of its own."""
    x = te.placeholder(values.shape, "float32", name="x")
    func = te.create_prim_func([x, te.compute(x.shape, lambda i: function(x(i)), name="y")])
    sch = Schedule(tvm.IRModule({"main": func.with_attr("global_symbol", "main")}))
    if lanes > 1:
        (loop,) = sch.get_loops(child_blocks(sch)[0])
        sch.vectorize(sch.split(loop, [None, lanes])[1])
    out = tensor(np.empty_like(values))
    module = build_module(sch.mod, make_target(host_target()))
    get_func(module, "main")(tensor(values), out)
    return out.numpy()


def exact(name, x):
    """The same in float64; what overflows or is inf * 0 there says so."""
    wide = x.astype("float64")
    erf = np.vectorize(math.erf, otypes=["float64"])
    with np.errstate(all="ignore"):
        return {
            "exp": lambda: np.exp(wide),
            "log": lambda: np.log(wide),
            "erf": lambda: erf(wide),
            "sigmoid": lambda: 1 / (1 + np.exp(-wide)),
            "tanh": lambda: np.tanh(wide),
            "gelu": lambda: wide * 0.5 * (1 + erf(wide / math.sqrt(2))),
        }[name]()


# name -> (absolute, relative) error, as the module's docstring promises
BOUNDS = {
    "exp": (1.7e-38, 2e-7),
    "log": (1e-7, 2e-7),
    "erf": (5e-7, 0),
    "sigmoid": (1.7e-38, 4e-7),
    "tanh": (5e-7, 0),
}


@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize("name", sorted(BOUNDS))
def test_error_over_the_whole_range(name, lanes):
    found = run(getattr(mathfn, name), X, lanes)
    wanted = exact(name, X)
    absolute, relative = BOUNDS[name]
    # Beyond float32's largest number the result is inf, up to the last place of the limit itself.
    finite = np.abs(wanted) < MAX * (1 - relative)
    error = np.abs(found[finite] - wanted[finite])
    assert (error <= absolute + relative * np.abs(wanted[finite])).all()
    assert np.isinf(found[wanted > MAX * (1 + relative)]).all()


@pytest.mark.parametrize("lanes", [1, 8, 16])
def test_exp_of_difference(lanes):
    """The documented error; exactly 0 far down, so that hidden keys have no weight; NaN stays."""
    x = np.resize(X[X <= 0], len(X) // 2 // 16 * 16)
    found, wide = run(mathfn.exp_of_difference, x, lanes), x.astype("float64")
    error = np.abs(found - np.exp(wide))
    assert (error <= 1.7e-38 + (2e-7 + 1e-7 * np.abs(wide).clip(max=100)) * np.exp(wide)).all()
    assert (found[x < -87.7] == 0).all()
    assert (found[x == 0] == 1).all()
    nan = np.full(16, np.nan, "float32")
    assert np.isnan(run(mathfn.exp_of_difference, nan, lanes)).all()


@pytest.mark.parametrize("lanes", [1, 16])
def test_gelu(lanes):
    found, wanted = run(mathfn.gelu, X, lanes), exact("gelu", X)
    finite = np.isfinite(wanted)
    error = np.abs(found[finite] - wanted[finite])
    assert (error <= 2e-6 * np.maximum(1, np.abs(X[finite]))).all()
    large = finite & (X < -6)
    assert (found[large] == 0).all()  # not x times what is left of a rounding error


@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize("name", [*sorted(BOUNDS), "gelu"])
def test_nan_and_infinities(name, lanes):
    values = np.resize(SPECIAL[:3], 16)
    found, wanted = run(getattr(mathfn, name), values, lanes), exact(name, values)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    known = ~np.isnan(wanted)
    np.testing.assert_allclose(found[known], wanted[known], atol=5e-7)


@pytest.mark.parametrize("lanes", [1, 16])
def test_log_at_the_ends(lanes):
    values = np.resize(np.array([0, -0.0, -1, 1, 1e-45], "float32"), 16)
    with np.errstate(all="ignore"):
        wanted = np.log(values)
    found = run(mathfn.log, values, lanes)
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-7)
    assert found[3] == 0


@pytest.mark.parametrize("exponent", [0, 0.25, 0.5, 0.75, 1, 2, 0.6, 3.1])
def test_inverse_power(exponent):
    values = X[(X > 1e-9) & (X < 1e12)]
    values = values[: len(values) // 16 * 16]
    found = run(lambda x: mathfn.inverse_power(x, exponent), values, 16)
    np.testing.assert_allclose(found, values.astype("float64") ** -exponent, rtol=1e-6)


def test_exp_is_exactly_zero_far_down():
    """A mask of -inf or -1e9 leaves nothing of a position in softmax."""
    values = np.resize(np.array([-np.inf, -1e9, -104, -87.5], "float32"), 16)
    assert (run(mathfn.exp, values, 16) == 0).all()


@pytest.mark.parametrize("lanes", [1, 16])
def test_round(lanes):
    halves = np.array(
        [0.5, 1.5, 2.5, -0.5, -1.5, 0.49999997, -0.49999997, 8388609, 3e9, -7.2], "float32"
    )
    values = np.resize(np.concatenate([halves, SPECIAL[:3]]), 32)
    even, away = run(rounded.round_even, values, lanes), run(rounded.round_away, values, lanes)
    np.testing.assert_array_equal(even, np.round(values))
    by_hand = [math.copysign(math.floor(abs(v) + 0.5), v) for v in halves[:5].tolist()] + [0, -0.0]
    np.testing.assert_array_equal(away[:7], by_hand)
    np.testing.assert_array_equal(away[7:13], [8388609, 3e9, -7, np.nan, np.inf, -np.inf])


@pytest.mark.parametrize("name", ["erf", "tanh"])
def test_denormals_keep_their_bits(name):
    x = np.exp2(np.linspace(-149, -127, 64)).astype("float32")
    found = run(getattr(mathfn, name), np.concatenate([x, -x]), 16)
    np.testing.assert_allclose(found, exact(name, np.concatenate([x, -x])), rtol=0, atol=4.3e-45)
