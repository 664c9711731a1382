"""1x1 convolutions over flat pixels in place, and concatenates that become slices."""

import re
from dataclasses import replace

import numpy as np
import pytest
from harness import assert_close, cpus, run_case

import selfbyoc
from selfbyoc import BUILTIN, Case, melting, op
from selfbyoc.analysis.kernels import kernels
from selfbyoc.codegen import lower
from selfbyoc.ir.emit import emit
from selfbyoc.machine import machine
from selfbyoc.schedules.kernels.conv.channels.plan import ChannelPlan
from selfbyoc.schedules.kernels.conv.layer import Layer
from selfbyoc.schedules.kernels.conv.pack import row_blocks
from selfbyoc.schedules.kernels.conv.pixels.plan import PixelPlan
from selfbyoc.schedules.kernels.conv.plan import plan_direct
from selfbyoc.schedules.kernels.conv.pointwise.plan import PointwisePlan
from selfbyoc.tir.concatenates import without_concatenates
from selfbyoc.tvm import empty, get_func, make_target, te, tensor, tir, tvm, walk
from selfbyoc.tvm.build import build_module

BY_NAME = {c.name: c for c in BUILTIN}
PLAIN = {"strides": (1, 1), "dilation": (1, 1), "padding": (0, 0, 0, 0), "groups": 1}

# Image, output channels: whole tiles; whole vectors; cut ones, in one task and in several.
SHAPES = [
    ((1, 64, 24, 24), 16),
    ((1, 8, 28, 28), 32),
    ((2, 5, 27, 13), 21),
    ((3, 2, 11, 11), 40),
    ((1, 19, 55, 55), 16),
]


def layer(image, channels=16, **attrs):
    attrs = {**PLAIN, **attrs}
    pads, (down, along) = attrs["padding"], attrs["strides"]
    high, wide = image[2] + pads[0] + pads[2], image[3] + pads[1] + pads[3]
    out = (image[0], channels, -(-high // down), -(-wide // along))
    kernel = (channels, image[1] // attrs["groups"], 1, 1)
    blocks = row_blocks(channels, attrs["groups"])
    return Layer("conv2d", image, kernel, out, attrs, "float32", blocks)


def form(image, channels=16, target=None, **attrs):
    cpu = machine(make_target(target) if target else selfbyoc.host_target())
    return type(plan_direct(layer(image, channels, **attrs), cpu))


def check_biased(image, channels, target):
    case = Case(
        lambda x, weight, bias: op.relu(op.bias_add(op.conv2d(x, weight), bias)),
        name="pointwise",
        x=image,
        weight=(channels, image[1], 1, 1),
        bias=(channels,),
        constants=("weight", "bias"),
    )
    run = run_case(BY_NAME["conv2d"], case, target=target and make_target(target))
    assert run.counts == {"conv2d": 1}
    assert_close(run)


@pytest.mark.parametrize("target", cpus(None, "llvm -mcpu=haswell", "llvm"))
@pytest.mark.parametrize(("image", "channels"), SHAPES)
def test_flat_pixels(image, channels, target):
    assert form(image, channels, target) is PointwisePlan
    check_biased(image, channels, target)


@pytest.mark.parametrize("window", [1, 3])
@pytest.mark.parametrize("channels", [7, 11, 13, 14])
def test_a_block_with_rows_that_are_no_channels_is_computed_once(channels, window):
    """Of a register tile that was cut each computed all rows of the block."""
    case = Case(
        lambda x, weight: op.relu(op.conv2d(x, weight, padding=window // 2)),
        name="few",
        x=(1, 6, 48, 48),
        weight=(channels, 6, window, window),
        constants=("weight",),
    )
    target = make_target("llvm -mcpu=haswell")
    run = run_case(BY_NAME["conv2d"], case, target=target)
    assert run.counts == {"conv2d": 1}
    assert_close(run)
    (kernel,) = melting(selfbyoc.partition_for_tefuse(run.mod, target=target)).kernels
    assert kernel.work < 1.5


@pytest.mark.parametrize(("image", "channels"), SHAPES[1:4])
def test_a_norm_and_a_residual_behind_flat_pixels(image, channels):
    vectors = dict.fromkeys(("gamma", "beta", "mean", "var"), (channels,))

    def program(x, weight, gamma, beta, mean, var, residual):
        y = op.batch_norm(op.conv2d(x, weight), gamma, beta, mean, var)[0]
        return op.relu(op.add(y, residual))

    residual = (image[0], channels, *image[2:])
    case = Case(
        program,
        name="residual",
        x=image,
        weight=(channels, image[1], 1, 1),
        **vectors,
        residual=residual,
    )
    run = run_case(BY_NAME["conv2d_add"], case)
    assert run.counts == {"conv2d_add": 1}
    assert_close(run)


@pytest.mark.parametrize("image", [(1, 16, 1, 1501), (1, 16, 1501, 1), (2, 16, 1, 97)])
def test_an_image_of_one_row_is_computed_once(image):
    """Of `x % width` TVM takes a tile to read all of the sums: each tile computed all of them."""

    def program(x, weight, bias, residual):
        return op.add(op.bias_add(op.conv2d(x, weight), bias), residual)

    shapes = {"x": image, "weight": (32, 16, 1, 1), "bias": (32,)}
    residual = (image[0], 32, *image[2:])
    case = Case(program, name="row", constants=("weight", "bias"), residual=residual, **shapes)
    run = run_case(BY_NAME["conv2d_add"], case)
    assert run.counts == {"conv2d_add": 1}
    assert_close(run)
    (kernel,) = melting(selfbyoc.partition_for_tefuse(run.mod)).kernels
    assert kernel.work < 1.5


def test_other_convolutions_take_another_form():
    """Few pixels are no lanes; a window, a padding or groups are no matrix product."""
    assert form((1, 512, 7, 7), 512) is ChannelPlan
    padded = {"padding": (0, 1, 0, 1), "target": "llvm -mcpu=cascadelake"}
    assert form((1, 8, 28, 28), **padded) is PixelPlan
    assert form((1, 8, 28, 28), groups=2) is PixelPlan


def test_the_image_is_packed_where_many_channels_read_it():
    def panels(channels, cores):
        cpu = replace(machine(make_target("llvm -mcpu=haswell")), cores=cores)
        found = plan_direct(layer((1, 64, 48, 48), channels), cpu)
        return found.panels

    assert panels(16, 2) == "in place"
    assert panels(64, 2) == "in each task"
    assert panels(512, 31) == "before all tasks"


def concatenated(parts, read):
    """A function of parts[i] = x[i] + i + 1, and their concatenate by `read`, as rows."""
    inputs = [te.placeholder((2, size), "float32", name=f"x{i}") for i, size in enumerate(parts)]
    made = [_more(x, i + 1) for i, x in enumerate(inputs)]
    out = te.compute((2, sum(parts)), lambda r, c: read(made, r, c), name="out")
    return te.create_prim_func([*inputs, out])


def _more(x, by):
    return te.compute(x.shape, lambda r, c: x[r, c] + tir.const(by, "float32"), name=f"y{by}")


def ran(func, parts, rng):
    name = func.with_attr("global_symbol", "main")
    kernel = get_func(build_module(tvm.IRModule({"main": name}), make_target("llvm")), "main")
    arrays = [rng.standard_normal((2, size)).astype("float32") for size in parts]
    out = empty((2, sum(parts)), "float32")
    kernel(*map(tensor, arrays), out)
    return arrays, out.numpy()


def test_the_inputs_of_a_concatenate_become_slices():
    parts = (3, 5, 2)

    def read(made, r, c):
        tail = tir.if_then_else(c >= 3, made[1](r, c - 3), made[0](r, c))
        return tir.if_then_else(c >= 8, made[2](r, c - 8), tail)

    func = concatenated(parts, read)
    done = without_concatenates(func)
    assert "out" in [str(b.name_hint) for b in blocks(func)]
    assert {str(b.name_hint) for b in blocks(done)} == {"y1", "y2", "y3", "root"}
    arrays, found = ran(done, parts, np.random.default_rng(0))
    expected = np.concatenate([a + i + 1 for i, a in enumerate(arrays)], axis=1)
    np.testing.assert_array_equal(found, expected)


def test_what_only_looks_like_a_concatenate_stays():
    def twice(made, r, c):
        return tir.if_then_else(c >= 3, made[0](r, c - 3), made[0](r, c))

    def turned(made, r, c):
        return tir.if_then_else(c >= 3, made[1](r, 5 - c), made[0](r, c))

    def more(made, r, c):
        return tir.if_then_else(c >= 3, made[1](r, c - 3), made[0](r, c)) * tir.const(2, "float32")

    for read in (twice, turned, more):
        func = concatenated((3, 3), read)
        assert without_concatenates(func) is func


def blocks(func):
    found = []
    walk(func.body, lambda n: found.append(n) if type(n).__name__ in ("SBlock", "Block") else None)
    return found


@pytest.mark.parametrize("target", cpus(None, "llvm -mcpu=haswell", "llvm"))
@pytest.mark.parametrize(
    ("image", "channels"),
    [((1, 24, 13, 13), 48), ((1, 7, 5, 13), 520), ((2, 16, 11, 9), 80), ((1, 8, 6, 14), 32)],
)
def test_channels_as_lanes_with_rows_in_uneven_tiles(image, channels, target):
    """Blocks of channels by two, by three and alone; 13 pixels are 7 and 6."""
    check_biased(image, channels, target)


@pytest.mark.parametrize("target", cpus(None, "llvm -mcpu=haswell", "llvm"))
@pytest.mark.parametrize(
    ("image", "strides"),
    [((1, 8, 16, 15), (2, 2)), ((2, 5, 27, 38), (1, 3)), ((1, 2, 31, 21), (3, 1))],
)
def test_a_stride_leaves_some_pixels(image, strides, target):
    case = Case(
        lambda x, weight: op.relu(op.conv2d(x, weight, strides=strides)),
        name="strided",
        x=image,
        weight=(20, image[1], 1, 1),
        constants=("weight",),
    )
    run = run_case(BY_NAME["conv2d"], case, target=target and make_target(target))
    assert run.counts == {"conv2d": 1}
    assert_close(run)


@pytest.mark.parametrize(("width", "stride"), [(427, 1), (941, 4)])
def test_a_long_window_stays_a_loop(width, stride):
    """256 taps of a constant-Q transform: unrolled, packing them took LLVM ten minutes."""
    case = Case(
        lambda x, weight: op.conv2d(x, weight, strides=(1, stride)),
        name="taps",
        x=(1, 1, 1, width),
        weight=(36, 1, 1, 256),
        constants=("weight",),
    )
    weight = np.ones((36, 1, 1, 256), "float32")
    mod = emit(case.program, {"x": case.args["x"], "weight": weight.shape}, {"weight": weight})
    target = make_target("llvm -mcpu=skylake-avx512")
    mod = selfbyoc.partition_for_tefuse(mod, target=target, composites=[BY_NAME["conv2d"]])
    (kernel,) = kernels(mod)
    scheduled = kernel.schedule(target)[1].mod["main"].script()
    unrolled = [int(n) for n in re.findall(r"unroll\((\d+)\)", scheduled)]
    assert unrolled
    assert max(unrolled) < 64
    run = run_case(BY_NAME["conv2d"], case)
    assert run.counts == {"conv2d": 1}
    assert_close(run)


def shared_out(func, name):
    """The tasks of the parallel loop around a block, and which of the block's axes they divide."""
    found = []

    def visit(loop):
        if type(loop).__name__ == "For" and int(loop.kind) == 1:
            walk(loop.body, lambda node: at(node, loop))

    def at(node, loop):
        block = getattr(node, "block", None)
        if block is not None and str(block.name_hint).endswith(name):
            pairs = zip(block.iter_vars, node.iter_values, strict=True)
            axes = [str(axis.var) for axis, value in pairs if uses(value, loop.loop_var)]
            found.append((int(loop.extent), axes))

    walk(func.body, visit)
    return found[0]


def uses(expr, var):
    found = []
    walk(expr, lambda node: found.append(node) if node.same_as(var) else None)
    return bool(found)


@pytest.mark.parametrize(
    ("image", "kernel", "pad"),
    [
        ((1, 256, 28, 28), (64, 256, 1, 1), 0),
        ((1, 128, 28, 28), (128, 128, 1, 1), 0),
        ((1, 24, 74, 32), (24, 24, 1, 3), 1),  # packed by each task, out of padded rows
    ],
)
def test_a_core_packs_what_it_reads(image, kernel, pad, monkeypatch):
    """Else a region reads what the other core's cache holds."""
    seen = []
    real = lower.finished
    monkeypatch.setenv("SELFBYOC_CACHE", "off")
    monkeypatch.setattr(lower, "finished", lambda func, *of: seen.append(func) or real(func, *of))
    weight = np.random.default_rng(0).standard_normal(kernel).astype("float32")
    mod = emit(
        lambda x, w: op.conv2d(x, w, padding=(0, pad)), {"x": (image, "float32")}, {"w": weight}
    )
    selfbyoc.build(mod, target="llvm -mcpu=skylake-avx512 -num-cores=2")
    (func,) = seen
    if pad:
        tasks, axes = shared_out(func, "_pad")
        assert axes == ["v_c", "v_lane"]
        assert tasks >= 2 * 4 * image[1]  # four blocks of rows a core, each of all channels
    else:
        assert "v_t" in shared_out(func, "_panels")[1]
