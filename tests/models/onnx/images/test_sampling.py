"""Images read at computed places: regions of RoiAlign, grids of GridSample."""

import numpy as np
import pytest
from onnx_models import FLOAT, INT64, model, random, value

import selfbyoc
from selfbyoc.errors import InputError
from selfbyoc.runtime.tolerance import first_wrong
from selfbyoc.tvm import GENERATION

relax_only = pytest.mark.skipif(GENERATION == "relay", reason="0.17 has no such regions")
IMAGE = (2, 3, 7, 9)
BOXES = np.array(
    [[4, 4, 10, 10], [1.5, 2, 13, 6.5], [4, 4, 5, 5], [0, 0, 6, 6], [8, 8, 30, 30], [6, 5, 6, 3]],
    "float32",
)
BATCH = np.array([0, 1, 1, 0, 1, 0])


def regions(count, opset=16, **attrs):
    attrs = {"output_height": 3, "output_width": 2, "spatial_scale": 0.5} | attrs
    ends = [value("x", FLOAT, *IMAGE), value("boxes", FLOAT, count, 4), value("i", INT64, count)]
    nodes = [("RoiAlign", ["x", "boxes", "i"], "y", attrs)]
    return model(nodes, ends, [value("y", FLOAT, count, IMAGE[1], 3, 2)], opset=opset)


def pixel(image, y, x):
    """Between the four around a place; 0 further than a pixel outside."""
    ends = np.subtract(image.shape[1:], 1)
    if not all(-1 <= at <= end + 1 for at, end in zip((y, x), ends, strict=True)):
        return np.zeros(len(image))
    at = np.clip((y, x), 0, ends)
    low = np.floor(at).astype(int)
    high, (b, a) = np.minimum(low + 1, ends), at - low
    left, right = image[:, :, low[1]], image[:, :, high[1]]
    columns = left * (1 - a) + right * a
    return columns[:, low[0]] * (1 - b) + columns[:, high[0]] * b


def aligned(x, boxes, batch, ratio, scale, half):
    """As Detectron2 has it."""
    found = np.zeros((len(boxes), x.shape[1], 3, 2))
    for n, box in enumerate(boxes * scale - (0.5 if half else 0)):
        size = box[[3, 2]] - box[[1, 0]]
        step = (size if half else np.maximum(size, 1)) / (3, 2)
        count = [ratio, ratio] if ratio else np.ceil(step).astype(int)
        for place in np.ndindex(3, 2):
            steps = [np.add(at, 0.5) / count for at in np.ndindex(*np.maximum(count, 0))]
            spots = [box[[1, 0]] + (place + each) * step for each in steps]
            if spots:
                read = [pixel(x[batch[n]], *spot) for spot in spots]
                found[(n, slice(None), *place)] = np.mean(read, 0)
    return found


@relax_only
@pytest.mark.filterwarnings("ignore::selfbyoc.errors.FallbackWarning")  # serial loops
@pytest.mark.parametrize(
    ("opset", "ratio", "scale", "mode"),
    [(16, 0, 0.5, None), (16, 2, 0.25, "half_pixel"), (10, 2, 0.5, None)],
)
def test_regions(opset, ratio, scale, mode):
    """Half a pixel counts after the boxes are scaled; one of no area is 0."""
    more = {} if mode is None else {"coordinate_transformation_mode": mode}
    proto = regions(len(BOXES), opset, sampling_ratio=ratio, spatial_scale=scale, **more)
    library, x = selfbyoc.build(selfbyoc.from_onnx(proto)), random(*IMAGE)
    wanted = aligned(x, BOXES, BATCH, ratio, scale, opset >= 16)
    assert first_wrong(library(x, BOXES, BATCH)[0], wanted, "float32", 64) is None


def test_regions_that_would_lie_elsewhere_are_refused():
    """On Relay all; on Relax where nothing can be written before them, as in a branch."""
    proto = regions(2, sampling_ratio=2)
    if GENERATION == "relax":
        from selfbyoc.models.onnx.checks import why_not
        from selfbyoc.models.onnx.graph import Graph

        assert "half_pixel is taken off before" in why_not(proto.graph.node[0], Graph(proto))
        return
    with pytest.raises(InputError, match="is half_pixel, and is taken for output_half_pixel"):
        selfbyoc.from_onnx(proto)


def mirrored(x, grid, mode, is_aligned):
    """A channel read as if mirror images went on for ever."""

    def at(place):
        found = []
        for n, size in zip(place, x.shape, strict=True):
            period = max(2 * (size - 1), 1) if is_aligned else 2 * size
            n %= period
            found.append(min(n, period - n if is_aligned else period - 1 - n))
        return x[tuple(found)]

    def cubic(away):
        a, d = -0.75, abs(away)
        near, far = ((a + 2) * d - (a + 3)) * d * d + 1, ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
        return near if d <= 1 else far if d < 2 else 0.0

    weigh = cubic if mode == "bicubic" else lambda away: max(0.0, 1 - abs(away))
    sizes = np.array(x.shape)
    found = np.zeros(grid.shape[:2])
    for place in np.ndindex(*found.shape):
        spot = grid[place][::-1].astype("float64") + 1
        spot = spot * (sizes - 1) / 2 if is_aligned else (spot * sizes - 1) / 2
        if mode == "nearest":
            found[place] = at(np.rint(spot).astype(int))
            continue
        low = np.floor(spot).astype(int)
        for step in np.ndindex(4, 4):
            there = low + step - 1
            found[place] += at(there) * np.prod([weigh(d) for d in spot - there])
    return found


@pytest.mark.parametrize(
    ("mode", "is_aligned", "shape"),
    [("bilinear", 0, (4, 5)), ("nearest", 1, (3, 4)), ("bicubic", 0, (1, 3))],
)
def test_mirror_images(mode, is_aligned, shape):
    """Minutes to build, when TVM mirrored each place where it is used. An axis of 1 is as good."""
    how = {"mode": mode, "padding_mode": "reflection", "align_corners": is_aligned}
    ends = [value("x", FLOAT, 1, 2, *shape), value("grid", FLOAT, 1, 3, 5, 2)]
    out = [value("y", FLOAT, 1, 2, 3, 5)]
    proto = model([("GridSample", ["x", "grid"], "y", how)], ends, out, opset=16)
    x, grid = random(1, 2, *shape), 3 * random(1, 3, 5, 2)
    (found,) = selfbyoc.build(selfbyoc.from_onnx(proto))(x, grid)
    wanted = [[mirrored(each, grid[0], mode, is_aligned) for each in x[0]]]
    assert first_wrong(found, np.array(wanted), "float32", 256) is None
