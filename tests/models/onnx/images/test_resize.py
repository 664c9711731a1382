"""Resize in all that ONNX says of it: as TVM's frontends have it, or as rows."""

from contextlib import nullcontext

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator
from onnx_models import FLOAT, INT64, check_by_reference, model, random, value

import selfbyoc
from selfbyoc.errors import FallbackWarning
from selfbyoc.tvm import GENERATION

SHAPE = (1, 2, 5, 7)
SIZES, SCALES = np.array([1, 2, 3, 10]), np.float32([1, 1, 0.6, 1.7])  # no whole ratios
KINDS = {
    "scales": {},
    "scales, nearest": {"mode": "nearest"},
    "cubic": {"mode": "cubic", "cubic_coeff_a": -0.5, "exclude_outside": 1},
    "cubic, antialias": {"mode": "cubic", "antialias": 1},
    "linear, antialias": {"antialias": 1},
    "symmetric": {"coordinate_transformation_mode": "half_pixel_symmetric"},
    "corners": {"coordinate_transformation_mode": "align_corners"},
    "corners, up": {
        "mode": "nearest", "nearest_mode": "ceil", "coordinate_transformation_mode": "asymmetric",
    },
    "of PyTorch": {"coordinate_transformation_mode": "pytorch_half_pixel"},
}  # fmt: skip


def resized(inputs, given=(), rank=4, **attributes):
    ends = [value("x", FLOAT, *SHAPE[-rank:]), *given], [value("y", FLOAT, *[None] * rank)]
    attributes = {"mode": "linear", **attributes}
    constants = {"scales": SCALES[-rank:], "sizes": SIZES[-rank:], "two": np.array([9, 3])}
    constants["roi"] = np.float32([0, 0, 0.2, 0.3, 1, 1, 0.7, 1.2])
    read = {n: a for n, a in constants.items() if n in inputs}
    return model([("Resize", inputs, "y", attributes)], *ends, opset=19, **read)


@pytest.mark.parametrize("name", KINDS)
def test_scales_that_give_no_whole_sizes(name):
    check_by_reference(resized(["x", "", "scales"], **KINDS[name]), random(*SHAPE))


@pytest.mark.parametrize("name", ["cubic, antialias", "symmetric", "corners"])
def test_sizes(name):
    check_by_reference(resized(["x", "", "", "sizes"], **KINDS[name]), random(*SHAPE))


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
def test_sizes_that_keep_the_ratio(policy):
    made = resized(
        ["x", "", "", "two"], axes=[3, 2], mode="nearest", keep_aspect_ratio_policy=policy
    )
    check_by_reference(made, random(*SHAPE))


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_a_region_of_interest(mode):
    kind = {"coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 9.0}
    check_by_reference(resized(["x", "roi", "", "sizes"], mode=mode, **kind), random(*SHAPE))


def test_two_axes():
    """No image: TVM's frontends resize the last axes of at least three."""
    check_by_reference(resized(["x", "", "scales"], rank=2), random(5, 7))


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_sizes_that_are_data(mode):
    """One library for all sizes; Relax makes places of them by serial loops, and says so."""
    proto = resized(["x", "", "", "sizes_given"], [value("sizes_given", INT64, 4)], mode=mode)
    serial = pytest.warns(FallbackWarning, match="serial loops")
    with serial if GENERATION == "relax" else nullcontext():
        library = selfbyoc.build(selfbyoc.from_onnx(proto), cache=False)
    x = random(*SHAPE)
    for sizes in ((1, 2, 3, 10), (1, 2, 5, 7), (1, 2, 1, 1)):
        given = np.array(sizes)
        (wanted,) = ReferenceEvaluator(proto).run(None, {"x": x, "sizes_given": given})
        found = library(x, given)[0]
        assert found.shape == sizes
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
