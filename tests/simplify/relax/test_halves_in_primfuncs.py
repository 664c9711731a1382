"""A model of halves with a PrimFunc, as frontends emit for what is no op: it gets halves."""

import numpy as np
from tvm import relax, topi

import selfbyoc


def test_a_primitive_of_halves():
    """One argument and several; what it gives is computed further in float32."""
    rng = np.random.default_rng(0)
    w = (rng.standard_normal((6, 4, 3, 3)) / 6).astype("float16")
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, 4, 7, 8), "float16"))
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit(relax.op.nn.relu(x))
            y = builder.emit_te(topi.nn.pad, y, [0, 0, 1, 1], [0, 0, 1, 1])
            y = builder.emit(relax.op.nn.conv2d(y, relax.const(w)))
            y = builder.emit_te(topi.add, y, builder.emit(relax.op.abs(y)))
            out = builder.emit_output(y)
        builder.emit_func_output(out)
    library = selfbyoc.build(builder.get(), cache=False)
    assert library.report.counts == {"conv2d": 1}
    x = rng.standard_normal((1, 4, 7, 8)).astype("float16")
    wide = np.pad(np.maximum(x, 0).astype("float64"), ((0, 0), (0, 0), (1, 1), (1, 1)))
    views = np.lib.stride_tricks.sliding_window_view(wide, (3, 3), axis=(2, 3))
    sums = np.einsum("nchwkl,ockl->nohw", views, w.astype("float64"))
    (found,) = library(x)
    assert found.dtype == np.float16
    np.testing.assert_allclose(found, sums + np.abs(sums), rtol=4e-3, atol=2e-3)
