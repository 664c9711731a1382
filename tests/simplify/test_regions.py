"""Convolutions whose taps lie far apart are computed in regions, on both generations."""

import itertools

import numpy as np
import pytest

import selfbyoc
from selfbyoc import op
from selfbyoc.ir.emit import emit
from selfbyoc.ir.generation import ir
from selfbyoc.partition.generation import ir as partition
from selfbyoc.runtime.tolerance import first_wrong
from selfbyoc.simplify.regions import WORTH, regions_of
from selfbyoc.simplify.windows import Side

EXTENTS, FAR, PADS = (9, 14, 33), (1, 6, 12, 24), (0, 5, 24, 30)
SIDES = [Side(*n) for n in itertools.product(EXTENTS, (1, 2, 3, 5), (1, 2), FAR, PADS, PADS)]


def met(side, place, taps):
    """Which pixel each tap reads at a place."""
    at = {tap: side.reads(tap, place) for tap in taps}
    return {tap: pixel for tap, pixel in at.items() if 0 <= pixel < side.extent}


def test_each_place_meets_what_it_met():
    several = 0
    for side in SIDES:
        if side.outputs < 1:
            continue
        found = regions_of(side)
        several += len(found) > 1
        assert [y for region in found for y in region.places] == list(range(side.outputs))
        for region in found:
            for place in region.places if len(found) > 1 else ():
                assert met(side, place, region.taps) == met(side, place, range(side.kernel)), side
    assert several > 80


def test_each_region_is_a_convolution_of_a_part_of_the_image():
    for side in SIDES:
        found = regions_of(side) if side.outputs > 0 else []
        for region in found if len(found) > 1 else ():
            part, before, after = region.image(side)
            taps = len(region.taps)
            alone = Side(len(part), taps, side.stride, side.dilation, before, after)
            assert min(before, after) >= 0
            assert alone.outputs == len(region.places)
            for n, place in enumerate(region.places):
                told = {tap: alone.reads(tap, n) + part.start for tap in range(taps)}
                wanted = {tap: side.reads(tap + region.taps.start, place) for tap in range(taps)}
                assert told == wanted


def test_what_saves_little_stays_whole():
    for side in (Side(33, 3, 1, 1, 1, 1), Side(33, 3, 1, 8, 8, 8), Side(7, 3, 1, 1, 1, 1)):
        assert len(regions_of(side)) == 1
    for side in (Side(33, 3, 1, 24, 24, 24), Side(29, 5, 1, 12, 24, 24)):
        found = regions_of(side)
        assert sum(r.products for r in found) < WORTH * side.outputs * side.kernel


ATROUS = {"padding": 24, "dilation": 24}
CASES = {
    "both": ((1, 64, 33, 33), (40, 64, 3, 3), ATROUS, 9),
    "rows": ((1, 33, 33, 96), (48, 33, 3, 3), {"padding": (24, 1), "dilation": (24, 1)}, 3),
    "batch": ((2, 40, 31, 34), (60, 40, 3, 3), {"padding": 24, "dilation": 24}, 9),
    "five": ((1, 19, 29, 29), (64, 19, 5, 5), {"padding": 24, "dilation": 12}, 25),
    "uneven": ((1, 64, 33, 35), (70, 64, 3, 3), {"padding": (30, 24, 18, 24), "dilation": 24}, 9),
    "stride": ((1, 96, 65, 65), (64, 96, 3, 3), {"padding": 48, "dilation": 48, "strides": 2}, 9),
    "grouped": ((1, 256, 33, 33), (256, 64, 3, 3), {**ATROUS, "groups": 4}, 9),
}  # fmt: skip
NHWC = {"data_layout": "NHWC", "kernel_layout": "HWIO"}


def by_definition(x, weight, padding=0, dilation=1, strides=1, groups=1):
    """A convolution of NCHW in float64: a product for each tap."""
    outputs, inputs, rows, columns = weight.shape
    down, across = np.broadcast_to(dilation, 2)
    ends = np.ravel(padding) if np.size(padding) == 4 else np.tile(np.broadcast_to(padding, 2), 2)
    top, left, bottom, right = (int(n) for n in ends)
    x = np.pad(x.astype("float64"), ((0, 0), (0, 0), (top, bottom), (left, right)))
    high, wide = x.shape[2] - (rows - 1) * down, x.shape[3] - (columns - 1) * across
    found = 0
    for r, c in itertools.product(range(rows), range(columns)):
        seen = x[
            :, :, r * down : r * down + high : strides, c * across : c * across + wide : strides
        ]
        parts = seen.reshape(len(x), groups, inputs, *seen.shape[2:])
        tap = weight[:, :, r, c].astype("float64").reshape(groups, outputs // groups, inputs)
        found = found + np.einsum("bgihw,goi->bgohw", parts, tap)
    return found.reshape(len(x), outputs, *found.shape[3:])


def convolutions(mod):
    graph = ir.read(partition.prepare(mod, None)["main"])
    return [call for call in graph.ops if call.kind == "conv2d"]


def arrays_of(image, kernel):
    rng = np.random.default_rng(len(CASES))
    weight = rng.standard_normal(kernel).astype("float32") / np.sqrt(np.prod(kernel[1:]))
    return rng.standard_normal(image).astype("float32"), weight.astype("float32")


@pytest.mark.parametrize("name", CASES)
def test_right(name):
    image, kernel, attrs, regions = CASES[name]
    x, weight = arrays_of(image, kernel)
    mod = emit(
        lambda x, w: op.relu(op.conv2d(x, w, **attrs)), {"x": image, "w": kernel}, {"w": weight}
    )
    found = convolutions(mod)
    assert len(found) == regions
    products = sum(np.prod(c.outputs[0].shape) * np.prod(c.inputs[1].shape[1:]) for c in found)
    library = selfbyoc.build(selfbyoc.partition_for_tefuse(mod), cache=False)
    assert sum(library.report.counts.values()) >= len({(c.inputs, c.outputs) for c in found})
    expected = np.maximum(by_definition(x, weight, **attrs), 0)
    assert products < WORTH * expected.size * np.prod(kernel[1:])
    (result,) = library(x)
    assert first_wrong(result, expected, "float32", int(np.prod(kernel[1:]))) is None


def test_channels_last():
    image, kernel, attrs, regions = CASES["both"]
    x, weight = arrays_of(image, kernel)
    turned = np.ascontiguousarray(weight.transpose(2, 3, 1, 0))
    types = {"x": tuple(image[n] for n in (0, 2, 3, 1)), "w": turned.shape}
    mod = emit(lambda x, w: op.conv2d(x, w, **attrs, **NHWC), types, {"w": turned})
    assert len(convolutions(mod)) == regions
    library = selfbyoc.build(selfbyoc.partition_for_tefuse(mod), cache=False)
    (result,) = library(np.ascontiguousarray(x.transpose(0, 2, 3, 1)))
    expected = by_definition(x, weight, **attrs).transpose(0, 2, 3, 1)
    assert first_wrong(result, expected, "float32", int(np.prod(kernel[1:]))) is None


def test_a_weight_that_is_an_input_stays_whole():
    image, kernel, attrs, _ = CASES["both"]
    assert (
        len(convolutions(emit(lambda x, w: op.conv2d(x, w, **attrs), {"x": image, "w": kernel})))
        == 1
    )


def test_few_products_stay_whole():
    x, weight = arrays_of((1, 8, 33, 33), (8, 8, 3, 3))
    mod = emit(
        lambda x, w: op.conv2d(x, w, **ATROUS), {"x": x.shape, "w": weight.shape}, {"w": weight}
    )
    assert len(convolutions(mod)) == 1
