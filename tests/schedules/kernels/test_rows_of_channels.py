"""Depthwise convolutions whose lanes are the pixels of a row."""

from functools import partial

import pytest
from against_numpy import normal, plans_of, taken
from harness import cpus

from selfbyoc import host_target, op
from selfbyoc.language.decisions import deciding
from selfbyoc.machine import machine
from selfbyoc.schedules.kernels.conv import plan as conv_plan
from selfbyoc.schedules.kernels.conv.depthwise.plan import (
    DepthwisePlan,
    decided_depthwise,
    usual_depthwise,
)
from selfbyoc.schedules.kernels.conv.layer import Layer
from selfbyoc.schedules.kernels.conv.window import Window
from selfbyoc.tvm import make_target

AVX2 = {"kind": "llvm", "mcpu": "haswell", "num-cores": 2}

# Image, channels of the result for each, window, attributes.
SHAPES = [
    pytest.param((1, 5, 6, 32), 1, (3, 3), {"padding": 1}, id="whole vectors"),
    pytest.param((2, 3, 7, 19), 1, (3, 3), {"padding": 1}, id="a batch, rows with a tail"),
    pytest.param((1, 4, 13, 37), 1, (5, 5), {"padding": 2, "strides": 2}, id="stride"),
    pytest.param((1, 3, 50, 35), 1, (3, 3), {"padding": 1, "strides": (2, 1)}, id="down alone"),
    pytest.param((1, 3, 9, 51), 1, (3, 3), {"padding": 1, "strides": (1, 3)}, id="along, by 3"),
    pytest.param((1, 2, 20, 40), 1, (3, 3), {"dilation": 2}, id="dilated, no padding"),
    pytest.param((1, 2, 9, 66), 1, (3, 3), {"dilation": 3, "strides": 2, "padding": 2}, id="both"),
    pytest.param((1, 2, 8, 34), 1, (3, 3), {}, id="read where it lies"),
    pytest.param((1, 6, 9, 33), 1, (4, 2), {"padding": (2, 1, 1, 0)}, id="uneven"),
    pytest.param((1, 4, 6, 24), 3, (3, 3), {"padding": 1}, id="three results of a channel"),
    pytest.param((1, 3, 1, 70), 1, (1, 7), {"padding": (0, 3)}, id="one row"),
    pytest.param((1, 2, 131, 16), 1, (3, 3), {"padding": 1}, id="a prime of rows"),
    pytest.param((1, 2, 25, 33), 1, (17, 19), {"padding": (8, 9)}, id="a loop over taps"),
    pytest.param((1, 2, 12, 40), 1, (1, 1), {"strides": 2}, id="no window"),
    pytest.param((1, 2, 5, 33), 1, (3, 3), {"padding": (9, 9)}, id="windows in padding alone"),
]


@pytest.fixture
def always(monkeypatch):
    """A row is the lanes, whatever the cost says."""
    monkeypatch.setattr(conv_plan, "paying_groups", lambda *_: None)
    monkeypatch.setattr(conv_plan, "LANES", (conv_plan.ROW,))


def weights_of(image, each, window):
    channels = image[1]
    return {"w": normal(channels * each, 1, *window), "b": normal(channels * each)}


@pytest.mark.parametrize("target", cpus(None, "llvm -mcpu=haswell", "llvm -mcpu=x86-64"))
@pytest.mark.parametrize(("image", "each", "window", "attrs"), SHAPES)
def test_results(image, each, window, attrs, target, always):
    weights = weights_of(image, each, window)

    def program(x, w, b):
        y = op.bias_add(op.conv2d(x, w, groups=image[1], **attrs), b)
        return op.multiply(op.sigmoid(y), y)

    args = {"x": normal(*image)}
    assert plans_of(program, args, weights, target or host_target()) == [DepthwisePlan]
    counts = taken(program, args, weights, target=target, cache=False)
    assert sum(counts.values()) == 1


def test_a_residual_and_what_stands_before(always):
    shape = (1, 5, 10, 27)
    weights = weights_of(shape, 1, (3, 3))

    def program(x, r, w, b):
        y = op.conv2d(op.relu(x), w, padding=1, groups=5)
        return op.relu(op.add(op.bias_add(y, b), r))

    args = {"x": normal(*shape), "r": normal(*shape, seed=1)}
    assert DepthwisePlan in plans_of(program, args, weights, host_target())
    assert taken(program, args, weights, cache=False) == {"conv2d_add": 1}


def test_two_readers_of_one_result(always):
    """Sums that several ops read are an image of their own."""
    weights = weights_of((1, 6, 9, 21), 1, (3, 3))

    def program(x, w, b):
        y = op.bias_add(op.conv2d(x, w, padding=1, groups=6), b)
        return op.conv2d(op.relu(y), w, padding=1, groups=6), op.exp(y)

    assert taken(program, {"x": normal(1, 6, 9, 21)}, weights, cache=False)


def layer(width, channels, window, stride=1, batch=1):
    pad = window // 2
    out = (width + 2 * pad - window) // stride + 1
    attrs = {"strides": (stride,) * 2, "padding": (pad,) * 4, "dilation": (1, 1)}
    image, result = (batch, channels, width, width), (batch, channels, out, out)
    kernel, attrs = (channels, 1, window, window), {**attrs, "groups": channels}
    return Layer("conv2d", image, kernel, result, attrs, "float32", (channels, 1))


# By measurement on Zen 3, one core, us: groups, padded rows as one, a row. Nov 2026.
MEASURED = {
    (112, 32, 3): True,  # -, 193, 147
    (56, 144, 3): True,  # -, 237, 144
    (28, 192, 3): True,  # -, 85, 60
    (56, 96, 7): False,  # 535, 632, 783
    (28, 192, 7): False,  # 250, 309, 312
    (14, 192, 5): False,  # 40, -, 56
    (7, 960, 3): False,
}


@pytest.mark.parametrize(("sizes", "pays"), MEASURED.items())
def test_what_the_cost_says(sizes, pays):
    one, cpu = layer(*sizes), machine(make_target(AVX2 | {"num-cores": 1}))
    grouped = conv_plan.paying_groups(one, cpu)
    found = grouped or conv_plan.plan_direct(one, cpu, free=True)
    assert isinstance(found, DepthwisePlan) == pays


def test_few_channels_for_many_cores_are_tasks_by_rows():
    plan = partial(usual_depthwise, layer(112, 12, 3))
    few, many = (plan(machine(make_target(AVX2 | {"num-cores": n})))[0] for n in (2, 64))
    assert not few.by_rows
    assert many.by_rows
    assert many.chunks > 1


@pytest.mark.parametrize("sizes", [(150, 3, 3, 2), (131, 2, 3), (16, 64, 5), (640, 2, 3)])
def test_the_rows_of_a_chunk_are_in_l1_where_a_divisor_allows(sizes):
    one, cpu = layer(*sizes), machine(make_target(AVX2))
    found = usual_depthwise(one, cpu)[0]
    assert list(found.faults(one, cpu)) == []
    assert found.frame_bytes <= cpu.l1_bytes or found.rows in (1, one.out[2])


@pytest.mark.parametrize(("window", "unrolled"), [(3, True), (31, False)])
def test_a_large_window_is_no_body_without_loops(window, unrolled):
    """31x31 taps of four sums were 3844 products, minutes of LLVM's time."""
    one, cpu = layer(56, 32, window), machine(make_target(AVX2))
    found = decided_depthwise(one, usual_depthwise(one, cpu), cpu)
    assert found.unrolled == Window(unrolled, unrolled)


def test_a_tile_that_is_told_over_the_end_of_a_row_has_copied_rows():
    """40 pixels are five vectors, which the plan reads where they lie; in tiles of two they hang
    over the end of a row.
    """
    one, cpu = layer(40, 11, 1), machine(make_target(AVX2))
    with deciding({"conv2d.tile": (2, 16)}):
        told = decided_depthwise(one, usual_depthwise(one, cpu), cpu)
    usual = decided_depthwise(one, usual_depthwise(one, cpu), cpu)
    assert (usual.copies, told.copies) == (False, True)
    assert list(told.faults(one, cpu)) == []
