"""Depthwise and grouped convolutions of small images: their lanes are groups, or the channels of
wide ones.
"""

import numpy as np
import pytest
from against_numpy import normal, plans_of, taken
from harness import cpus

import selfbyoc
from selfbyoc import host_target, op
from selfbyoc.ir.emit import emit
from selfbyoc.machine import machine
from selfbyoc.partition.generation import ir
from selfbyoc.schedules.kernels.conv import plan as conv_plan
from selfbyoc.schedules.kernels.conv.channels.plan import ChannelPlan
from selfbyoc.schedules.kernels.conv.groups.cost import groups_time, pixels_time
from selfbyoc.schedules.kernels.conv.groups.plan import GroupPlan, planned_groups
from selfbyoc.schedules.kernels.conv.layer import Layer
from selfbyoc.schedules.kernels.conv.pack import pack, row_blocks, rows_of_one, whole_blocks
from selfbyoc.schedules.kernels.conv.pixels.plan import PixelPlan, usual_pixels
from selfbyoc.tvm import GENERATION, make_target, te, tensor, tvm

AVX512 = {"kind": "llvm", "mcpu": "skylake-avx512", "num-cores": 2}

# Image, channels of a group before and after, window, attributes.
SHAPES = [
    pytest.param((1, 35, 4, 4), (1, 1), (3, 3), {"padding": 1}, id="a tail of groups"),
    pytest.param((2, 48, 7, 5), (1, 1), (5, 5), {"padding": 2}, id="a batch"),
    pytest.param((1, 64, 2, 2), (1, 1), (3, 3), {"padding": 1}, id="fewer pixels than lanes"),
    pytest.param((1, 32, 1, 1), (1, 1), (3, 3), {"padding": 1}, id="one pixel"),
    pytest.param((1, 40, 9, 1), (1, 1), (3, 1), {"padding": (1, 0)}, id="one column"),
    pytest.param((1, 64, 9, 8), (1, 1), (3, 3), {"padding": 1, "strides": 2}, id="stride"),
    pytest.param((1, 48, 11, 11), (1, 1), (3, 3), {"dilation": 2}, id="dilated, no padding"),
    pytest.param((1, 36, 6, 6), (1, 1), (4, 4), {"padding": (2, 1, 1, 2)}, id="uneven padding"),
    pytest.param((1, 32, 5, 5), (1, 3), (3, 3), {"padding": 1}, id="three channels of one"),
    pytest.param((1, 264, 4, 4), (8, 8), (3, 3), {"padding": 1, "strides": 2}, id="8 of 8"),
    pytest.param((2, 102, 7, 7), (6, 4), (3, 3), {"padding": 1}, id="4 of 6"),
    pytest.param((1, 80, 3, 3), (4, 5), (1, 1), {}, id="no window"),
    pytest.param((1, 3, 17, 17), (1, 1), (3, 3), {"padding": 1}, id="three groups"),
]


def weights_of(image, channels, window):
    groups = image[1] // channels[0]
    out = groups * channels[1]
    return groups, {"w": normal(out, channels[0], *window), "b": normal(out)}


@pytest.fixture
def always(monkeypatch):
    """Groups are the lanes, whatever the cost says."""
    monkeypatch.setattr(conv_plan, "groups_time", lambda *_: 0.0)


@pytest.mark.parametrize("target", cpus(None, "llvm -mcpu=haswell", "llvm -mcpu=x86-64"))
@pytest.mark.parametrize(("image", "channels", "window", "attrs"), SHAPES)
def test_results(image, channels, window, attrs, target, always):
    groups, weights = weights_of(image, channels, window)

    def program(x, w, b):
        y = op.bias_add(op.conv2d(x, w, groups=groups, **attrs), b)
        return op.multiply(op.sigmoid(y), y)

    args = {"x": normal(*image)}
    assert plans_of(program, args, weights, target or host_target()) == [GroupPlan]
    counts = taken(program, args, weights, target=target, cache=False)
    assert sum(counts.values()) == 1


@pytest.mark.parametrize("shape", [(1, 40, 7, 7), (2, 19, 3, 5)])
def test_a_batch_norm_a_residual_and_what_stands_before(shape, always):
    """Prologue, epilogue and an operand of the result's shape."""
    _, weights = weights_of(shape, (1, 1), (3, 3))

    def program(x, r, w, b):
        y = op.conv2d(op.relu(x), w, padding=1, groups=shape[1])
        return op.relu(op.add(op.bias_add(y, b), r))

    args = {"x": normal(*shape), "r": normal(*shape, seed=1)}
    assert GroupPlan in plans_of(program, args, weights, host_target())
    assert taken(program, args, weights, cache=False) == {"conv2d_add": 1}


def test_two_readers_of_one_result(always):
    """Sums that several ops read are turned back by themselves."""
    _, weights = weights_of((1, 33, 6, 6), (1, 1), (3, 3))

    def program(x, w, b):
        y = op.bias_add(op.conv2d(x, w, padding=1, groups=33), b)
        return op.conv2d(op.relu(y), w, padding=1, groups=33), op.exp(y)

    assert taken(program, {"x": normal(1, 33, 6, 6)}, weights, cache=False)


def test_a_weight_is_packed_by_groups(always):
    _, weights = weights_of((1, 18 * 4, 4, 4), (4, 2), (3, 3))

    def program(x, w):
        return op.conv2d(x, w, padding=1, groups=18)

    w = weights["w"]
    mod = emit(program, {"x": (1, 72, 4, 4)}, {"w": w})
    ((site,),) = ir.call_constants(selfbyoc.partition_for_tefuse(mod)).values()
    packed = next(array for array in site.values() if array.ndim == 6)
    assert packed.shape == (2, 2, 4, 3, 3, 16)
    np.testing.assert_array_equal(packed[1, 1, 3, :, :, 1], w[17 * 2 + 1, 3])
    np.testing.assert_array_equal(packed[1, ..., 2:], 0)


def test_a_weight_that_is_no_constant_is_not_packed_so(always):
    def program(x, w):
        return op.conv2d(x, w, padding=1, groups=32)

    args = {"x": normal(1, 32, 4, 4), "w": normal(32, 1, 3, 3)}
    assert plans_of(program, args, {}, host_target()) == [PixelPlan]
    assert taken(program, args, cache=False) == {"conv2d": 1}


@pytest.mark.parametrize("target", cpus(None, "llvm -mcpu=haswell"))
def test_stage_by_stage_with_a_pointwise_convolution(target, always):
    """One output, so that the pair runs stage by stage: the first stage has groups as lanes."""
    weights = {"d": normal(40, 1, 3, 3), "c": normal(40), "p": normal(1, 40, 1, 1)}

    def program(x, d, c, p):
        y = op.relu(op.bias_add(op.conv2d(x, d, padding=1, groups=40), c))
        return op.conv2d(y, p)

    args = {"x": normal(1, 40, 6, 5)}
    assert taken(program, args, weights, target=target, cache=False) == {"depthwise_pointwise": 1}


WIDE = [
    pytest.param((1, 96, 4, 4), (48, 48), (3, 3), {"padding": 1}, id="whole vectors"),
    pytest.param((1, 240, 2, 2), (120, 120), (3, 3), {"padding": 1}, id="zeros between"),
    pytest.param((2, 168, 5, 4), (56, 56), (3, 3), {"padding": 1, "strides": 2}, id="a batch"),
    pytest.param((1, 720, 4, 4), (120, 120), (3, 3), {"padding": 1}, id="in parts"),
    pytest.param((1, 112, 7, 7), (56, 28), (1, 1), {}, id="no window"),
    pytest.param((1, 64, 14, 14), (32, 24), (3, 3), {"padding": 1}, id="rows of pixels"),
]


@pytest.mark.parametrize("target", cpus(None, "llvm -mcpu=haswell", "llvm -mcpu=x86-64"))
@pytest.mark.parametrize(("image", "channels", "window", "attrs"), WIDE)
def test_wide_groups_have_channels_as_lanes(image, channels, window, attrs, target, monkeypatch):
    """With an operand of the result's shape, and with another reader of the sums."""
    monkeypatch.setattr(conv_plan, "usual_pixels", lambda *_: [])
    monkeypatch.setattr(conv_plan, "paying_groups", lambda *_: None)
    groups, weights = weights_of(image, channels, window)

    def program(x, r, w, b):
        y = op.add(op.bias_add(op.conv2d(x, w, groups=groups, **attrs), b), r)
        return op.relu(y)

    step = attrs.get("strides", 1)
    out = (image[0], groups * channels[1], -(-image[2] // step), -(-image[3] // step))
    args = {"x": normal(*image), "r": normal(*out, seed=1)}
    assert plans_of(program, args, weights, target or host_target()) == [ChannelPlan]
    assert taken(program, args, weights, target=target, cache=False) == {"conv2d_add": 1}


@pytest.mark.parametrize("each", [48, 120, 14, 31])
def test_no_block_is_of_two_groups(each):
    def groups_in(blocks, rows, size):
        return [{(b * rows + r) // size for r in range(rows)} for b in range(blocks)]

    blocks, rows = row_blocks(5 * each, 5)
    alone = all(len(found) == 1 for found in groups_in(blocks, rows, each))
    assert alone == (rows_of_one(each) > 0) == (each != 31)
    assert whole_blocks(5 * each, 5) == (5 * -(-each // 16), 16)


def test_zeros_stand_between_groups():
    weight = normal(2 * 24, 3, 3, 3)
    w = te.placeholder(weight.shape, "float32", name="w")
    packed = evaluated(pack(w, 2, whole=True), w, weight)
    assert packed.shape == (4, 3, 3, 3, 16)
    np.testing.assert_array_equal(packed[2, 1, :, :, 5], weight[24 + 5, 1])
    np.testing.assert_array_equal(packed[3, 2, :, :, 7], weight[24 + 16 + 7, 2])
    np.testing.assert_array_equal(packed[[1, 3], ..., 8:], 0)


def evaluated(result, placeholder, value):
    """A tensor expression's value by one input."""
    func = te.create_prim_func([placeholder, result])
    built = tvm.build(func, target="llvm") if GENERATION == "relay" else tvm.compile(func)
    found = tensor(np.zeros([int(e) for e in result.shape], "float32"))
    (built if GENERATION == "relay" else built["main"])(tensor(value), found)
    return found.numpy()


def layer(size, groups, channels, window, stride=1):
    out, after = groups * channels, -(-size // stride)
    attrs = {"strides": (stride,) * 2, "padding": (window // 2,) * 4, "dilation": (1, 1)}
    image, kernel = (1, out, size, size), (out, channels, window, window)
    result = (1, out, after, after)
    attrs["groups"] = groups
    return Layer("conv2d", image, kernel, result, attrs, "float32", row_blocks(out, groups))


@pytest.mark.parametrize(
    ("sizes", "taken"),
    [
        ((2, 1152, 1, 3), True),  # 11 us with pixels as lanes, 2 so (two cores of Zen 5)
        ((7, 960, 1, 5), True),  # 22 and 13
        ((28, 96, 1, 7), True),  # 46 and 26
        ((4, 55, 8, 3, 2), True),  # 51 and 3
        ((56, 144, 1, 3), False),  # 54 and 77
        ((12, 5, 1, 3), False),  # one task
    ],
)
def test_what_the_cost_says(sizes, taken):
    one, cpu = layer(*sizes), machine(make_target(AVX512))
    found = planned_groups(one, cpu)
    time = pixels_time(one, usual_pixels(one, cpu)[0])
    assert (groups_time(one, found, cpu) < time) == taken


def test_weights_that_l1_does_not_hold_are_read_from_l2_by_each_tile():
    cpu = machine(make_target(AVX512 | {"mcpu": "haswell"}))
    assert conv_plan.paying_groups(layer(7, 55, 8, 3), cpu) is None  # 37 KB a task
    assert conv_plan.paying_groups(layer(7, 960, 1, 5), cpu) is not None


def test_what_does_not_fit():
    cpu = machine(make_target(AVX512))
    assert conv_plan.paying_groups(layer(7, 1, 64, 3), cpu) is None  # no groups
    assert conv_plan.paying_groups(layer(64, 32, 16, 3), cpu) is None  # 4.5 MB a task


@pytest.mark.parametrize("mcpu", ["x86-64", "haswell", "skylake-avx512"])
@pytest.mark.parametrize("sizes", [(7, 40, 1, 7), (4, 36, 16, 3), (13, 32, 1, 3), (14, 16, 4, 3)])
def test_a_tile_divides_the_result_and_fits(sizes, mcpu):
    one, cpu = layer(*sizes), machine(make_target(AVX512 | {"mcpu": mcpu}))
    plan = planned_groups(one, cpu)
    rest = [n % size for n, size in zip((sizes[2], *one.out[2:]), plan.tile, strict=True)]
    assert rest == [0, 0, 0]
    assert np.prod(plan.tile) <= cpu.vector_registers
    assert f"{plan.tile[1]} x {plan.tile[2]} pixels, a task is 16 groups" in str(plan)
