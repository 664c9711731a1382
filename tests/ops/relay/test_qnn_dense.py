"""qnn.dense before a qnn.requantize, as importers write it: bit for bit what TVM gives alone."""

import numpy as np
import pytest
from levels import bytes_of
from qnn_models import alone, number
from tvm import relay

import selfbyoc
from selfbyoc.tvm import tvm

F32 = "float32"
SHAPES = {"tail": (3, 37, 21), "row": (1, 64, 10), "many": (40, 129, 48)}


def layer(name, scales, rounding, *, zeros=(3, 0, -5), dtype="int8", weights="int8", biased=True):
    """x, and the levels of a layer in `dtype`, limited as by an activation; `zeros` are the
    input's, the weight's and the result's.
    """
    rows, depth, units = SHAPES[name]
    rng = np.random.default_rng(7)
    weight = bytes_of(rng, (units, depth), weights)
    x = relay.var("x", shape=(rows, depth), dtype=dtype)
    y = relay.qnn.op.dense(
        x, number(weight, weights), number(zeros[0]), number(zeros[1]), number(0.02, F32),
        number(0.01, F32), units=units,
    )  # fmt: skip
    if biased:
        y = relay.nn.bias_add(y, number(rng.integers(-9000, 9000, units)))
    factors = scales if np.ndim(scales) == 0 else np.geomspace(*scales, units)
    y = relay.qnn.op.requantize(
        y, number(factors, F32), number(0), number(0.5, F32), number(zeros[2]), axis=1,
        out_dtype=dtype, rounding=rounding, compute_dtype="int64",
    )  # fmt: skip
    y = relay.clip(y, 0 if dtype == "uint8" else -90, 100)
    return tvm.IRModule.from_expr(relay.Function([x], y))


def checked(mod, name, dtype="int8"):
    rows, depth, _ = SHAPES[name]
    x = bytes_of(np.random.default_rng(11), (rows, depth), dtype)
    library = selfbyoc.build(mod)
    assert library.report.counts == {"dense_integers": 1}
    np.testing.assert_array_equal(library(x)[0], alone(mod, x=x))
    return library.report


@pytest.mark.parametrize("rounding", ["UPWARD", "TONEAREST"])
@pytest.mark.parametrize("scales", [0.0007, (0.0001, 0.9)], ids=["one", "by-unit"])
@pytest.mark.parametrize("name", SHAPES)
def test_requantised(name, scales, rounding):
    report = checked(layer(name, scales, rounding), name)
    assert not report.left  # the whole layer is one kernel


@pytest.mark.parametrize("zeros", [(0, 0, 0), (0, 0, 9), (255, 128, 30)])
def test_levels_without_signs(zeros):
    """Weights of uint8 count from 128."""
    weights = "uint8" if zeros[1] else "int8"
    if zeros[1]:
        mod = layer("tail", 0.001, "UPWARD", zeros=zeros, dtype="uint8", weights=weights)
        checked(mod, "tail", "uint8")
    else:
        checked(layer("tail", 0.001, "None", zeros=zeros, biased=False), "tail")


def test_a_weight_around_another_zero_point_stays():
    mod = layer("tail", 0.001, "UPWARD", zeros=(3, 7, 0))
    report = selfbyoc.explain(mod).report
    assert report.counts == {}
    assert "qnn.dense" in report.left
