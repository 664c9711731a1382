"""Tensors whose sizes are looked at when the model runs, among ops that a composite has."""

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from tvm import relax

import selfbyoc
from selfbyoc.tvm import tir

drawn = np.random.default_rng(0)
WEIGHT = drawn.standard_normal((8, 3, 3, 3)).astype("float32")
SCALE, SHIFT, MEAN, VARIANCE = drawn.uniform(0.5, 1.5, (4, 8)).astype("float32")


def cast_between():
    """A batch norm of what a convolution makes of half as many pixels, if their number is even."""
    n, builder = tir.Var("n", "int64"), relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, 3, n, 6), "float32"))
    norm = [relax.const(each) for each in (SCALE, SHIFT, MEAN, VARIANCE)]
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit(relax.op.nn.conv2d(x, relax.const(WEIGHT), strides=2, padding=1))
            y = builder.match_cast(y, relax.TensorType((1, 8, n // 2, 3), "float32"))
            y = builder.emit(relax.op.nn.batch_norm(y, *norm, axis=1, training=False)[0])
            y = builder.emit_output(builder.emit(relax.op.nn.relu(y)))
        builder.emit_func_output(y)
    return builder.finalize()


def reference(x):
    padded = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)])
    windows = sliding_window_view(padded, (3, 3), (2, 3))[:, :, ::2, ::2]
    y = np.einsum("nchwij,ocij->ohwn", windows, WEIGHT)[..., 0].transpose(1, 2, 0)
    normed = (y - MEAN) / np.sqrt(VARIANCE + 1e-5) * SCALE + SHIFT
    return np.maximum(normed, 0).transpose(2, 0, 1)[None]


@pytest.mark.filterwarnings("ignore::selfbyoc.errors.FallbackWarning")
def test_no_match_reaches_over_a_cast():
    """TVM fuses nothing over it: a match that did was an AssertionError."""
    library = selfbyoc.build(cast_between(), cache=False)
    assert "conv2d_batch_norm_relu" not in library.report.counts
    for n in (2, 8, 34):
        x = np.random.default_rng(n).standard_normal((1, 3, n, 6)).astype("float32")
        np.testing.assert_allclose(library(x)[0], reference(x), rtol=1e-4, atol=1e-5)
