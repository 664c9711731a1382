"""Extents that are not known when compiling: symbols have kernels; what has no name is left to TVM
with the reason, and still right.
"""

import numpy as np
from tvm import relax
from tvm.script import relax as R

import selfbyoc
from selfbyoc import Composite, op
from selfbyoc.tvm import tir

dense_relu = Composite("dense_relu", lambda x, w: op.relu(op.dense(x, w)))


def model(shape):
    x = relax.Var("x", R.Tensor(shape, "float32") if shape else R.Tensor("float32", ndim=2))
    w = relax.Var("w", R.Tensor((5, 8), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x, w]):
        with builder.dataflow():
            y = builder.emit(relax.op.matmul(x, builder.emit(relax.op.permute_dims(w))))
            out = builder.emit_output(relax.op.nn.relu(y))
        builder.emit_func_output(out)
    return builder.get()


def test_refused_with_the_reason():
    report = selfbyoc.report(selfbyoc.partition_for_tefuse(model(None), composites=[dense_relu]))
    assert report.counts == {}
    (record,) = report.records
    text = "x has an extent that is not known when compiling: float32[dynamic, dynamic]"
    assert record.reason == text


def test_the_model_runs():
    w = np.random.default_rng(0).standard_normal((5, 8)).astype("float32")
    library = selfbyoc.build(
        model((tir.Var("n", "int64"), 8)), params={"w": w}, composites=[dense_relu]
    )
    assert library.report.counts == {"dense_relu": 1}
    for n in (1, 3, 17):
        x = np.random.default_rng(n).standard_normal((n, 8)).astype("float32")
        np.testing.assert_allclose(library(x)[0], np.maximum(x @ w.T, 0), atol=1e-5)
