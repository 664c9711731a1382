"""Convolutions lose the taps that never meet the image, on both generations."""

import itertools

import numpy as np
import pytest

import selfbyoc
from selfbyoc import op
from selfbyoc.ir.emit import emit
from selfbyoc.ir.generation import ir
from selfbyoc.partition.generation import ir as partition
from selfbyoc.simplify.taps import kept_of, trimmed
from selfbyoc.simplify.windows import Side, Window


def by_definition(side):
    """Which tap reads which place of the image, for each place of the window."""
    return [
        {
            tap: y * side.stride - side.before + tap * side.dilation
            for tap in range(side.kernel)
            if 0 <= y * side.stride - side.before + tap * side.dilation < side.extent
        }
        for y in range(side.outputs)
    ]


FEW, PADS = (1, 2, 3, 5), range(5)
SIDES = [Side(*n) for n in itertools.product(FEW, FEW, (1, 2, 3), (1, 2, 4), PADS, PADS)]


def test_the_same_products_are_left():
    trims = 0
    for side in SIDES:
        if side.outputs < 1 or (found := trimmed(side)) is None:
            continue
        taps, after = found
        trims += 1
        assert after.before >= 0
        assert after.after >= 0
        assert len(taps) == after.kernel < side.kernel
        told = [{tap + taps.start: at for tap, at in row.items()} for row in by_definition(after)]
        assert told == by_definition(side), side
    assert trims > 200


@pytest.mark.parametrize(
    ("window", "taps", "padding"),
    [
        (Window((1, 1), (3, 3), (1, 1), (1, 1), (1, 1, 1, 1)), (1, 1), (0, 0, 0, 0)),
        (Window((2, 2), (3, 3), (2, 2), (1, 1), (1, 1, 1, 1)), (2, 2), (0, 0, 0, 0)),
        (Window((9, 7), (3, 3), (1, 1), (9, 9), (9, 9, 9, 9)), (1, 1), (0, 0, 0, 0)),
        (Window((9, 1), (3, 3), (1, 1), (1, 1), (1, 1, 1, 1)), (3, 1), (1, 0, 1, 0)),
    ],
)
def test_what_is_kept(window, taps, padding):
    (rows, columns), told = kept_of(window)
    assert (len(rows), len(columns)) == taps
    assert told == padding


def test_what_meets_everywhere_stays():
    assert kept_of(Window((2, 2), (3, 3), (1, 1), (1, 1), (1, 1, 1, 1))) is None


CASES = {
    "one-pixel": ((2, 5, 1, 1), (7, 5, 3, 3), {"padding": 1}),
    "stride": ((1, 6, 2, 2), (9, 6, 3, 3), {"padding": 1, "strides": 2}),
    "dilated": ((1, 3, 9, 7), (4, 3, 3, 3), {"padding": 9, "dilation": 9}),
    "one-row": ((1, 3, 1, 17), (4, 3, 5, 3), {"padding": (2, 1)}),
    "depthwise": ((1, 6, 1, 1), (6, 1, 3, 3), {"padding": 1, "groups": 6}),
    "nhwc": (
        (1, 2, 2, 6), (3, 3, 6, 9),
        {"padding": 1, "strides": 2, "data_layout": "NHWC", "kernel_layout": "HWIO"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_right(name):
    image, kernel, attrs = CASES[name]
    channels = kernel[3] if name == "nhwc" else kernel[0]
    axis = 3 if name == "nhwc" else 1

    def program(x, weight, bias):
        return op.relu(op.bias_add(op.conv2d(x, weight, **attrs), bias, axis=axis))

    rng = np.random.default_rng(0)
    shapes = {"x": image, "weight": kernel, "bias": (channels,)}
    arrays = {n: rng.standard_normal(s).astype("float32") for n, s in shapes.items()}
    x = arrays.pop("x")
    mod = emit(program, shapes, arrays)
    library = selfbyoc.build(selfbyoc.partition_for_tefuse(mod), cache=False)
    alone = selfbyoc.build(selfbyoc.partition_for_tefuse(mod, composites=[]), cache=False)
    graph = ir.read(partition.prepare(mod, None)["main"])
    (weight,) = (c.inputs[1] for c in graph.ops if c.kind == "conv2d")
    assert np.prod(weight.shape) < np.prod(kernel)
    assert sum(library.report.counts.values()) == 1
    runtime = emit(program, shapes, {"bias": arrays["bias"]})
    expected = selfbyoc.build(selfbyoc.partition_for_tefuse(runtime, composites=[]), cache=False)(
        x, arrays["weight"]
    )
    for found in (library(x), alone(x)):
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-5, atol=1e-5)


def test_a_weight_that_is_an_input_stays():
    image, kernel, attrs = CASES["one-pixel"]
    mod = emit(lambda x, w: op.conv2d(x, w, **attrs), {"x": image, "w": kernel})
    graph = ir.read(partition.prepare(mod, None)["main"])
    assert graph.ops[0].inputs[1].shape == kernel


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_windows_that_lie_in_the_padding_alone(dtype):
    """One row of pixels between two of padding, and every third row is looked at."""

    def program(x, weight):
        x = op.silu(x) if dtype == "float32" else x
        return op.conv2d(x, weight, padding=1, strides=3, groups=3, out_dtype=out)

    out = "" if dtype == "float32" else "int32"
    rng = np.random.default_rng(0)
    weight = rng.integers(-9, 9, (51, 3, 1, 5)).astype(dtype)
    types = {"x": ((1, 9, 1, 7), dtype), "weight": (weight.shape, dtype)}
    library = selfbyoc.build(emit(program, types, {"weight": weight}))
    assert not library.report.counts
    assert not any(op.kind == "conv2d" for op in library.report.ops)
    (found,) = library(rng.integers(-9, 9, (1, 9, 1, 7)).astype(dtype))
    assert found.dtype == (dtype if dtype == "float32" else "int32")
    np.testing.assert_array_equal(found, np.zeros((1, 51, 1, 2), found.dtype))
