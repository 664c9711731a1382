"""Elements that stand there several times, of open sizes: Tile, Resize by whole numbers, and what a
detector computes of the sides of its image.
"""

import numpy as np
import pytest
from onnx_models import FLOAT, check_at_sizes, check_by_reference, model, random, value

from selfbyoc.tvm import GENERATION

runtime = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.skipif(GENERATION == "relay", reason="Relay's sizes have no names")

SIDE = [("Shape", ["x"], "sizes", {}), ("Gather", ["sizes", "three"], "side", {})]
CAST = ("Cast", ["side"], "wide", {"to": FLOAT})
NUMBERS = {
    "one": np.int64(1), "three": np.int64(3), "zero": np.float32(0), "step": np.float32(1),
    "half": np.float32(0.5), "two": np.float32(2), "flat": np.array([1, 2, -1]),
    "scales": np.array([1, 1, 2, 3], np.float32), "front": np.array([0]),
    "ones": np.array([1, 1, 1]),
}  # fmt: skip
CENTRES = ("Range", ["zero", "wide", "step"], "numbers", {})


def tile():
    """As many times as the image is wide."""
    return [
        *SIDE, ("Unsqueeze", ["side", "front"], "sides", {}),
        ("Concat", ["ones", "sides"], "times", {"axis": 0}), ("Tile", ["x", "times"], "y", {}),
    ]  # fmt: skip


def centres():
    """As PyTorch traces `torch.arange(width, dtype=torch.float32) + 0.5`."""
    return [
        *SIDE,
        CAST,
        CENTRES,
        ("Add", ["numbers", "half"], "at", {}),
        ("Add", ["x", "at"], "y", {}),
    ]


def halved():
    """A float that is whole at every size: (2 * width) / 2, and its floor."""
    return [
        *SIDE, CAST, ("Mul", ["wide", "two"], "more", {}), ("Div", ["more", "two"], "less", {}),
        ("Floor", ["less"], "end", {}), ("Range", ["zero", "end", "step"], "numbers", {}),
        ("Add", ["x", "numbers"], "y", {}),
    ]  # fmt: skip


def places():
    """All places as one axis, the channels of which there are two beside."""
    return [("Reshape", ["x", "flat"], "rows", {}), ("Concat", ["rows", "rows"], "y", {"axis": 2})]


def _resize(where, rounding):
    how = {"coordinate_transformation_mode": where, "nearest_mode": rounding, "mode": "nearest"}
    return lambda: [("Resize", ["x", "", "scales"], "y", how)]


CASES = {
    "tile": tile, "centres": centres, "halved": halved, "places": places,
    "resize": _resize("asymmetric", "floor"),
    "half_pixel": _resize("half_pixel", "round_prefer_floor"),
    "half_pixel_up": _resize("half_pixel", "round_prefer_ceil"),
}  # fmt: skip


def made(case):
    nodes = CASES[case]()
    used = {name for _, inputs, *_ in nodes for name in inputs}
    weights = {name: array for name, array in NUMBERS.items() if name in used}
    given, rank = value("x", FLOAT, 1, 2, "height", "width"), 3 if case == "places" else 4
    return model(nodes, [given], [value("y", FLOAT, *[None] * rank)], **weights)


@pytest.mark.filterwarnings("ignore::selfbyoc.errors.FallbackWarning")
def test_a_linear_resize_of_an_open_image_copies_no_pixels():
    how = {"coordinate_transformation_mode": "asymmetric", "mode": "linear"}
    node = ("Resize", ["x", "", "scales"], "y", how)
    given = value("x", FLOAT, 1, 2, "height", "width")
    proto = model([node], [given], [value("y", FLOAT, *[None] * 4)], scales=NUMBERS["scales"])
    check_by_reference(proto, random(1, 2, 4, 5))


@pytest.mark.filterwarnings("ignore::selfbyoc.errors.FallbackWarning")
@pytest.mark.parametrize("case", CASES)
def test_copies_of_open_sizes(case):
    check_at_sizes(made(case), *((1, 2, h, w) for h, w in ((1, 1), (2, 3), (5, 4), (7, 16))))
