"""The plans of depthwise separable blocks for several machines: register tiles, chunks, tasks."""

import math
from dataclasses import replace

import pytest
from harness import model, random_args

import selfbyoc
from selfbyoc import BUILTIN, Case, op
from selfbyoc.analysis.kernels import kernels
from selfbyoc.codegen.schedule import stacked_as
from selfbyoc.machine import Machine
from selfbyoc.schedules.kernels.conv.depth import LEAST_STEPS
from selfbyoc.schedules.kernels.separable import tiles
from selfbyoc.schedules.kernels.separable.form import Form, Pixels
from selfbyoc.schedules.kernels.separable.plan import SeparablePlan, fold_of, plan
from selfbyoc.schedules.kernels.separable.staged import StagedPlan
from selfbyoc.schedules.steps.tiles import RegisterTile
from selfbyoc.tvm import make_target

BY_NAME = {c.name: c for c in BUILTIN}
MACHINES = {
    "sse": Machine(16, 16, fused=False, copies=True),
    "avx2": Machine(32, 16, l2_bytes=512 << 10, multiply_adds=2, loads=2, latency=4),
    "avx512": Machine(64, 32, l2_bytes=1 << 20, multiply_adds=2, loads=2, latency=4),
    "neon": Machine(16, 32, l2_bytes=1 << 20, multiply_adds=2, loads=2, latency=4, in_pairs=True),
}
# MobileNetV2: channels, expanded, out, rows and columns, stride.
V2 = [
    (16, 96, 24, 112, 2), (24, 144, 24, 56, 1), (24, 144, 32, 56, 2), (32, 192, 32, 28, 1),
    (32, 192, 64, 28, 2), (64, 384, 64, 14, 1), (64, 384, 96, 14, 1), (96, 576, 96, 14, 1),
    (96, 576, 160, 14, 2), (160, 960, 160, 7, 1), (160, 960, 320, 7, 1),
]  # fmt: skip
# MobileNetV1: channels, out, rows and columns, stride.
V1 = [
    (32, 64, 112, 1), (64, 128, 112, 2), (128, 128, 56, 1), (128, 256, 56, 2), (256, 256, 28, 1),
    (256, 512, 28, 2), (512, 512, 14, 1), (512, 1024, 14, 2), (1024, 1024, 7, 1),
]  # fmt: skip


class Conv:
    """A convolution as a plan sees it."""

    kind = "conv2d"

    def __init__(self, name, image, weight, stride=1, padding=0, groups=1):
        self.name = name
        size = [(e + 2 * padding - weight[2]) // stride + 1 for e in image[2:]]
        self.attrs = {
            "strides": (stride, stride), "padding": (padding,) * 4, "dilation": (1, 1),
            "groups": groups,
        }  # fmt: skip
        self.inputs = [Shape(image), Shape(weight)]
        self.outputs = [Shape((image[0], weight[0], *size))]


class Shape(tuple):
    """A tensor's (shape, dtype), with the shape by name."""

    def __new__(cls, shape):
        return super().__new__(cls, (tuple(shape), "float32"))

    @property
    def shape(self):
        return self[0]


class Ops(list):
    """Ops of which nothing is packed."""

    def of(self, kind):
        return [call for call in self if call.kind == kind]

    def packing(self, call, index):
        return selfbyoc.codegen.info.ops.Packing("")


def inverted(channels, expanded, out, size, stride=1, batch=1):
    expand = Conv("conv2d", (batch, channels, size, size), (expanded, channels, 1, 1))
    image = expand.outputs[0].shape
    depth = Conv("conv2d_1", image, (expanded, 1, 3, 3), stride, 1, expanded)
    return Ops([expand, depth, Conv("conv2d_2", depth.outputs[0].shape, (out, expanded, 1, 1))])


def separable(channels, out, size, stride=1, batch=1):
    depth = Conv("conv2d", (batch, channels, size, size), (channels, 1, 3, 3), stride, 1, channels)
    return Ops([depth, Conv("conv2d_1", depth.outputs[0].shape, (out, channels, 1, 1))])


def of_layers(cpu):
    """The plans of all layers that go by blocks of channels."""
    found = [plan(inverted(*layer), cpu) for layer in V2] + [plan(separable(*a), cpu) for a in V1]
    return [p for p in found if not isinstance(p, StagedPlan)]


@pytest.mark.parametrize("name", MACHINES)
def test_tiles_fit_in_registers(name):
    cpu = MACHINES[name]
    for made in of_layers(cpu):
        for run in [made.sums, *([made.frame] if made.expands else [])]:
            tile = RegisterTile(run.pixels.tile, run.vectors)
            assert tile.fits(cpu), (made, run)
            assert not cpu.copies or tile.sums <= 10  # of 16 registers
        assert made.hidden % made.frame.vectors == 0
        assert made.outputs % made.sums.vectors == 0


@pytest.mark.parametrize("name", MACHINES)
def test_tiles_are_busy(name):
    """Multiply-adds, not loads or latency, bound the tiles; few pixels hang over."""
    cpu = MACHINES[name]
    for made in of_layers(cpu):
        for run in [made.sums, *([made.frame] if made.expands else [])]:
            tile = RegisterTile(run.pixels.tile, run.vectors)
            assert tile.efficiency(cpu) * run.pixels.use > 0.8, (str(made), run)


@pytest.mark.parametrize("cores", [1, 8, 16, 64])
@pytest.mark.parametrize("name", MACHINES)
def test_no_core_idles_where_there_is_work(name, cores):
    cpu = replace(MACHINES[name], cores=cores)
    for layer in V2:
        made = plan(inverted(*layer), cpu)
        if made.chunked:
            tasks = [made.form.chunks]
        else:
            results = made.outputs // made.sums.vectors * made.sums.pixels.bands
            tasks = [made.hidden // made.frame.vectors, results]
        # A small image is too little for 64 cores to go around.
        enough = 2.5 if cores <= 16 else 6
        for count in tasks:
            assert cpu.unevenness(count) < enough, (str(made), count)


def test_a_plan_reads_well():
    made = plan(inverted(24, 144, 24, 56), replace(MACHINES["avx2"], cores=2))
    assert str(made) == (
        "3x3 windows, 4 at a time; tasks are 8 chunks of 7 rows; expands in register tiles of "
        "4 pixels x 3 vectors; projects in register tiles of 4 pixels x 3 vectors"
    )
    assert hash(made) == hash(plan(inverted(24, 144, 24, 56), replace(MACHINES["avx2"], cores=2)))
    strided = inverted(24, 144, 24, 56)
    strided[0].attrs["strides"] = (2, 2)
    assert "stage by stage" in str(plan(strided, MACHINES["avx2"]))


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("outputs", [4, 7, 8, 24, 96])
def test_an_image_is_transposed_where_its_products_pay(name, outputs):
    """They fill half a vector."""
    cpu = MACHINES[name]
    pays = 2 * outputs >= cpu.lanes("float32")
    made = plan(separable(96, outputs, 46, 1), cpu)
    assert isinstance(made, SeparablePlan if pays else StagedPlan)
    for layer in V1:
        assert isinstance(plan(separable(*layer), cpu), SeparablePlan)


def test_rows_of_seven_pixels_are_one_flat_run():
    made = plan(inverted(160, 960, 160, 7), MACHINES["avx2"])
    assert made.frame.pixels.band == 7
    assert made.frame.pixels.use > 0.95


def test_groups_of_vectors_end_with_a_block_of_the_weight():
    """Of 91 and 23 vectors: not one at a time."""
    avx2 = MACHINES["avx2"]
    made = plan(separable(728, 728, 19), avx2)
    assert (made.outputs, made.hidden) == (92, 91)
    assert made.sums.vectors > 1
    made = plan(inverted(80, 184, 80, 14), avx2)
    assert (made.outputs, made.hidden) == (10, 24)
    assert made.frame.vectors > 1
    ops = separable(728, 728, 19)
    padded = plan(ops, avx2)
    assert not list(padded.faults(ops, avx2))
    assert list(replace(padded, outputs=94).faults(ops, avx2))


def test_windows_do_not_hang_over_where_that_costs_products():
    """Four together are 20 of 19 columns; their weights are read once, but by 728 outputs each
    column more is multiplied.
    """
    assert [tiles.together(19, 9, outputs, MACHINES["avx2"])[0] for outputs in (8, 728)] == [4, 1]


def test_a_packed_weight_says_what_is_side_by_side():
    ops = inverted(24, 144, 24, 56)
    packing = selfbyoc.codegen.info.ops.Packing
    for steps in (72, 144):
        ops.packing = lambda call, i, n=steps: packing("w_project", True, (3, n, 1, 1, 16))
        assert plan(ops, MACHINES["avx512"]).fold == 144 // steps


def test_steps_side_by_side_fill_vectors():
    assert [fold_of(n, 48, 16) for n in (16, 24, 32, 40, 20, 8, 4)] == [1, 2, 1, 1, 1, 2, 1]
    assert [fold_of(n, 48, 8) for n in (16, 24, 32, 40, 20, 4)] == [1, 1, 1, 1, 1, 2]
    assert fold_of(24, 45, 16) == 1  # no pairs


def test_pixels_are_where_they_lie():
    for pixels in (Pixels(4, 9, 1, 5), Pixels(4, 9, 4, 5), Pixels(3, 7, 3, 7)):
        assert pixels.bands * pixels.band == pixels.rows
        assert pixels.tiles == math.ceil(pixels.band * pixels.width / pixels.tile)
        assert 0.8 < pixels.use <= 1


def rows_of(size, channels, *, batch=1, stride=1, cpu=MACHINES["avx512"], cores=2):
    attrs = ((3, 3), (stride, stride), (1, 1), (1, 1))
    form = Form((size * stride,) * 2, (size, size), *attrs, size)
    return replace(form, rows=tiles.chunk_rows(form, batch, channels, replace(cpu, cores=cores))[0])


def test_a_small_image_is_one_chunk():
    assert rows_of(7, 960).chunks == 1
    assert rows_of(14, 576, cores=1).chunks == rows_of(28, 192, cores=1).chunks == 1
    assert rows_of(14, 576, cores=8).chunks == 1
    assert rows_of(28, 192, cpu=MACHINES["sse"], cores=1).chunks > 1  # 256 KB of L2
    assert rows_of(28, 192, batch=4, cores=1).chunks > 1  # between the two regions are 2.4 MB


def test_cores_with_an_even_part_of_the_rows_share_nothing():
    assert rows_of(14, 576).chunks == rows_of(28, 192).chunks == 2
    assert rows_of(4, 728).chunks == rows_of(8, 512).chunks == 1  # for so few pixels all weights


def test_products_are_summed_by_what_l1_holds():
    for name, cpu in MACHINES.items():
        made = plan(separable(512, 512, 28, 1), replace(cpu, cores=2))
        assert made.parts > 1, name
        assert not made.prefetches
        depth = 512 // made.parts
        assert made.parts * depth == 512
        read = 4 * depth * (made.sums.vectors * made.lanes + made.sums.pixels.tile)
        assert read <= cpu.l1_bytes or depth == LEAST_STEPS, name
        assert plan(inverted(2, 3, 2, 20), cpu).parts == 1  # less than a vector


@pytest.mark.parametrize("size", [4, 5, 7, 14])
def test_weights_of_one_task_come_ahead_and_in_one_part(size):
    for name, cpu in MACHINES.items():
        made = plan(separable(512, 512, size, 1), replace(cpu, cores=2))
        if not made.chunked:
            assert (made.parts, made.prefetches) == (1, made.sums.pixels.bands == 1), name
    assert not plan(separable(512, 512, 7, 1), MACHINES["avx2"]).chunked


def test_a_large_image_has_chunks_for_all_cores():
    assert rows_of(56, 144).chunks == 4
    assert rows_of(56, 96, stride=2).chunks % 2 == 0
    assert rows_of(112, 64).chunks % 2 == 0
    assert rows_of(56, 144, cores=16).chunks > 8
    assert rows_of(56, 144, batch=4).rows >= rows_of(56, 144).rows
    assert rows_of(1000, 4000).rows == 1  # nothing fits


@pytest.mark.parametrize("mcpu", ["x86-64", "haswell"])
def test_stages_are_for_the_target(mcpu):
    """What a target's plan says is what its stages are."""
    target = make_target({"kind": "llvm", "mcpu": mcpu})
    sizes = {"w_expand": (48, 8, 1, 1), "w_depth": (48, 1, 3, 3), "w_project": (8, 48, 1, 1)}

    def block(x, w_expand, w_depth, w_project):
        y = op.clip(op.conv2d(x, w_expand))
        y = op.clip(op.conv2d(y, w_depth, groups=48, padding=1))
        return op.conv2d(y, w_project)

    case = Case(block, x=(1, 8, 9, 9), **sizes, constants=tuple(sizes))
    composite = BY_NAME["inverted_residual"]
    mod = selfbyoc.partition_for_tefuse(
        model(composite, case, random_args(case)), target=target, composites=[composite]
    )
    (kernel,) = kernels(mod)
    with target:
        stacked = stacked_as(kernel.source, target, None)
    assert stacked.plan.lanes == {"x86-64": 4, "haswell": 8}[mcpu]
    assert stacked.stages.frame.sums == "conv2d_sums"
