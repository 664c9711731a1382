"""Local response normalisation as one kernel, whatever its exponent, and what it refuses."""

import numpy as np
import pytest
from lrn import meaning

import selfbyoc
from selfbyoc.analysis.kernels import kernels
from selfbyoc.models.onnx_model import import_onnx
from selfbyoc.runtime.tolerance import first_wrong
from selfbyoc.schedules.composites.lrn import lrn


def lrn_module(shape, **attrs):
    """LRN from ONNX: Relax has none, its importer writes seven ops."""
    onnx = pytest.importorskip("onnx")
    make = onnx.helper
    x, y = (make.make_tensor_value_info(n, onnx.TensorProto.FLOAT, shape) for n in "xy")
    graph = make.make_graph([make.make_node("LRN", ["x"], ["y"], **attrs)], "g", [x], [y])
    return import_onnx(
        make.make_model(graph, opset_imports=[make.make_opsetid("", 13)], ir_version=8)
    )


@pytest.mark.parametrize(
    ("shape", "attrs"),
    [
        ((1, 7, 5, 6), {"size": 5, "alpha": 0.2, "beta": 0.75, "bias": 1.5}),
        ((2, 3, 9, 11), {"size": 3, "alpha": 1.0, "beta": 0.5, "bias": 1.0}),
        ((1, 2, 13, 13), {"size": 7, "alpha": 1.0, "beta": 1.0, "bias": 2.0}),  # more than it has
        ((1, 9, 16, 16), {"size": 1, "alpha": 3.0, "beta": 0.6, "bias": 1e-3}),
        ((1, 17, 1, 1), {"size": 5, "alpha": 1e-9, "beta": 2.3, "bias": 0.7}),
        ((1, 12, 55, 55), {"size": 5, "alpha": 1e-4, "beta": 0.75, "bias": 1.0}),
    ],
)
def test_against_numpy(shape, attrs):
    library = selfbyoc.build(lrn_module(shape, **attrs))
    assert library.report.counts == {"lrn": 1}
    for scale in (1.0, 1e6):
        x = (np.random.default_rng(0).standard_normal(shape) * scale).astype("float32")
        expected = meaning(x, **attrs)
        assert first_wrong(library(x)[0], expected, "float32", attrs["size"]) is None


@pytest.mark.parametrize(("beta", "stages"), [(0.75, 1), (2.0, 1), (2.3, 2), (-0.5, 2)])
def test_the_base_of_a_power_is_computed_once(beta, stages):
    """Inlined, TVM would visit it for every time that the polynomials name it: about a minute."""
    mod = lrn_module((1, 7, 5, 6), size=5, alpha=0.2, beta=beta, bias=1.5)
    (kernel,) = kernels(selfbyoc.partition_for_tefuse(mod, composites=[lrn]))
    _, scheduled = kernel.schedule(selfbyoc.host_target())
    (info,) = selfbyoc.op_info(scheduled.mod["main"])
    assert len(info.blocks) == stages


@pytest.mark.parametrize("attrs", [{"bias": 0.0}, {"alpha": -1.0}, {"bias": -2.0}])
def test_a_base_that_may_not_be_positive_is_refused(attrs):
    mod = lrn_module((1, 7, 5, 6), **{"size": 5, "alpha": 1e-4, "beta": 0.75, "bias": 1.0} | attrs)
    records = selfbyoc.report(selfbyoc.partition_for_tefuse(mod, composites=[lrn])).records
    (refused,) = [r for r in records if r.status == "refused"]
    assert refused.cause == "check"
    assert "not positive" in refused.reason
