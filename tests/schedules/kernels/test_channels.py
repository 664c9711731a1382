"""Convolutions whose lanes are channels: what a task pads by itself, and tiles under a window."""

from dataclasses import replace

import pytest
from harness import assert_close, run_case

from selfbyoc import BUILTIN, Case, op
from selfbyoc.machine import machine
from selfbyoc.schedules.kernels.conv import plan as conv_plan
from selfbyoc.schedules.kernels.conv.channels import schedule as channels_schedule
from selfbyoc.schedules.kernels.conv.channels.candidates import usual_channels
from selfbyoc.schedules.kernels.conv.channels.plan import (
    MOST_OF_COLUMNS,
    ChannelPlan,
    decided_channels,
)
from selfbyoc.schedules.kernels.conv.layer import Layer
from selfbyoc.schedules.kernels.conv.pack import row_blocks, whole_blocks
from selfbyoc.schedules.kernels.conv.plan import plan_direct
from selfbyoc.tvm import make_target

(CONV,) = [composite for composite in BUILTIN if composite.name == "conv2d"]
SERVER = {"kind": "llvm", "mcpu": "skylake-avx512", "num-cores": 2}


def layer(image, channels, window, **attrs):
    attrs = {"strides": (1, 1), "padding": (0,) * 4, "dilation": (1, 1), "groups": 1, **attrs}
    top, left, bottom, right = attrs["padding"]
    padded = image[2] + top + bottom, image[3] + left + right
    out = [
        (n - d * (k - 1) - 1) // s + 1
        for n, d, k, s in zip(padded, attrs["dilation"], window, attrs["strides"], strict=True)
    ]
    kernel = (channels, image[1] // attrs["groups"], *window)
    result = (image[0], channels, *out)
    return Layer("conv2d", image, kernel, result, attrs, "float32", row_blocks(channels))


# Images by two cores; window, attributes.
PADDED = [
    ((8, 32, 1, 24), 32, (1, 5), {"padding": (0, 2, 0, 2)}),
    ((2, 19, 5, 4), 64, (3, 3), {"padding": (2, 1, 0, 1), "strides": (2, 1)}),
    ((4, 16, 1, 11), 48, (1, 3), {"padding": (0, 8, 0, 8), "dilation": (1, 8)}),
    ((6, 32, 9, 6), 80, (3, 1), {"padding": (1, 0, 1, 0), "groups": 2}),
]


@pytest.mark.parametrize(("image", "channels", "window", "attrs"), PADDED)
def test_each_core_pads_its_own_images(image, channels, window, attrs):
    cpu = machine(make_target(SERVER))
    if attrs.get("groups", 1) == 1:
        found = plan_direct(layer(image, channels, window, **attrs), cpu)
        assert isinstance(found, ChannelPlan)
        assert found.by_images
        assert list(found.faults(layer(image, channels, window, **attrs), cpu)) == []
    per_group = image[1] // attrs.get("groups", 1)
    case = Case(
        lambda x, weight: op.conv2d(x, weight, **attrs),
        x=image, weight=(channels, per_group, *window), constants=("weight",),
    )  # fmt: skip
    for target in (None, "llvm -mcpu=haswell"):
        run = run_case(CONV, case, target=target)
        assert run.counts == {"conv2d": 1}
        assert_close(run)


@pytest.mark.parametrize(
    ("cores", "batch", "channels", "attrs"),
    [
        (2, 1, 32, {}),  # two cores would pad one image
        (2, 3, 32, {}),  # one core would have two images of three
        (2, 8, 512, {}),  # the weight would be read from L3 for each
        (2, 8, 32, {"padding": (0, 0, 0, 0)}),  # there is nothing to pad
    ],
)
def test_images_are_no_tasks(cores, batch, channels, attrs):
    cpu = replace(machine(make_target(SERVER)), cores=cores)
    attrs = {"padding": (0, 1, 0, 1), **attrs}
    found = plan_direct(layer((batch, channels, 1, 12), channels, (1, 3), **attrs), cpu)
    assert isinstance(found, ChannelPlan)
    assert not found.by_images


@pytest.mark.parametrize(
    ("one", "most"),
    [
        (layer((1, 256, 14, 14), 256, (3, 3), padding=(1,) * 4, strides=(2, 2)), 7),
        (layer((8, 32, 1, 24), 32, (1, 5), padding=(0, 2, 0, 2)), 8),
        (layer((1, 512, 7, 7), 2048, (1, 1)), 12),  # no taps read a pixel twice
    ],
)
def test_what_taps_share_has_registers(one, most):
    """With AVX-512 alone: other CPUs broadcast by a load of its own, which stays one."""
    found = plan_direct(one, machine(make_target(SERVER)))
    assert found.tile.vectors == 2
    assert found.pixels <= most
    assert found.pixels > 8 or one.window != (1, 1)


@pytest.mark.parametrize(
    ("one", "is_column"),
    [
        (layer((1, 192, 17, 17), 256, (7, 1), padding=(3, 0, 3, 0)), True),
        (layer((1, 128, 17, 17), 128, (3, 1), padding=(1, 0, 1, 0)), True),
        (layer((1, 192, 17, 17), 256, (1, 7), padding=(0, 3, 0, 3)), False),
    ],
)
def test_runs_under_a_column_are_short(one, is_column):
    """Else LLVM broadcasts the pixels of all taps before the first product."""
    cpu, one = machine(make_target(SERVER)), replace(one, blocks=whole_blocks(one.out[1]))
    found = decided_channels(one, usual_channels(one, cpu), cpu)
    products = found.prefetch * found.tile.sums * one.steps // one.kernel[1]
    assert products > 0
    assert (products <= MOST_OF_COLUMNS) == is_column


AVX2 = {"kind": "llvm", "mcpu": "haswell", "num-cores": 2}
TILES_OF_14 = layer((1, 480, 14, 14), 112, (1, 1))  # 5, 5 and 4 pixels, 160 channels at a time


@pytest.mark.parametrize(
    ("one", "target", "is_in_memory"),
    [
        (TILES_OF_14, AVX2, True),
        (TILES_OF_14, SERVER, False),  # its registers hold a row
        (layer((1, 80, 14, 14), 112, (1, 1)), AVX2, False),  # all channels at once
        (layer((1, 480, 10, 10), 112, (1, 1)), AVX2, False),  # equal tiles are no unrolled loop
    ],
)
def test_sums_of_parts_are_not_on_the_stack(one, target, is_in_memory):
    cpu, one = machine(make_target(target)), replace(one, blocks=whole_blocks(one.out[1]))
    found = decided_channels(one, usual_channels(one, cpu), cpu)
    assert found.in_memory == is_in_memory
    assert list(found.faults(one, cpu)) == []


@pytest.mark.parametrize("channels", [112, 107])
def test_sums_in_memory_are_right(channels):
    case = Case(
        lambda x, weight, bias: op.hard_swish(op.bias_add(op.conv2d(x, weight), bias)),
        x=(1, 480, 14, 14), weight=(channels, 480, 1, 1), bias=(channels,),
        constants=("weight", "bias"),
    )  # fmt: skip
    run = run_case(CONV, case, target=AVX2)
    assert run.counts == {"conv2d": 1}
    assert_close(run)


def plain(x, weight, bias):
    return op.conv2d(x, weight)


def biased(x, weight, bias):
    return op.relu(op.bias_add(op.conv2d(x, weight), bias))


def strided(x, weight, bias):
    return op.relu(op.bias_add(op.conv2d(x, weight, strides=2, padding=1), bias))


# Images, output channels, window, what is computed, and whether tasks have whole blocks.
TURNED = [
    ((1, 40, 7, 7), 32, 1, plain, True),  # one row, and no more
    ((1, 24, 13, 14), 48, 3, strided, True),  # one row, of a window
    ((2, 130, 13, 14), 64, 1, biased, True),  # rows of 14
    ((1, 480, 14, 14), 64, 1, biased, True),  # sums of parts: all rows at once
    ((1, 480, 14, 14), 64, 1, plain, True),
    ((1, 32, 36, 40), 64, 3, strided, True),  # rows of 20, where a stride leaves pixels out
    ((1, 40, 7, 7), 37, 1, biased, False),  # the last block is not whole
]


@pytest.mark.parametrize("target", [None, AVX2])
@pytest.mark.parametrize(("image", "channels", "window", "program", "is_turned"), TURNED)
def test_results_are_transposed_in_registers(
    image, channels, window, program, is_turned, target, monkeypatch
):
    turned = []
    transpose = channels_schedule.transpose
    monkeypatch.setenv("SELFBYOC_CACHE", "0")
    monkeypatch.setattr(channels_schedule, "transpose", lambda *a: turned.append(transpose(*a)))
    monkeypatch.setattr(conv_plan, "fastest", by_channels)
    case = Case(
        program, x=image, weight=(channels, image[1], window, window), bias=(channels,),
        constants=("weight", "bias"),
    )  # fmt: skip
    run = run_case(CONV, case, target=target)
    assert run.counts == {"conv2d": 1}
    assert bool(turned) == is_turned
    assert_close(run)


def by_channels(forms, cpu):
    """Channels as lanes where they can be."""
    form = forms[conv_plan.CHANNELS]
    return form.decided(form.layer, form.plans, cpu)


def test_wide_images_have_channels_as_lanes_where_a_core_multiplies_once_a_cycle():
    """Where operands are in memory, so that taps share their pixels for nothing."""
    wide = layer((1, 64, 56, 56), 128, (3, 3), padding=(1,) * 4, strides=(2, 2))
    cpu = replace(machine(make_target(SERVER)), multiply_adds=1, loads=1)
    found = plan_direct(wide, cpu, free=True)
    assert isinstance(found, ChannelPlan)
    assert found.width % found.pixels == 0, "tiles that are not equal are unrolled"
    assert not isinstance(plan_direct(wide, machine(make_target(AVX2)), free=True), ChannelPlan)
