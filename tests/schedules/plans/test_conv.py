"""Plans of convolutions for several machines: registers, cores, and what they say of themselves."""

from dataclasses import replace

import pytest

from selfbyoc.codegen.info.op_record import describe
from selfbyoc.codegen.info.ops import Ops
from selfbyoc.machine import Machine, machine
from selfbyoc.schedules.kernels.conv.chain.plan import Melted, melted
from selfbyoc.schedules.kernels.conv.channels.plan import ChannelPlan
from selfbyoc.schedules.kernels.conv.layer import Layer
from selfbyoc.schedules.kernels.conv.pack import row_blocks
from selfbyoc.schedules.kernels.conv.pixels.plan import PixelPlan
from selfbyoc.schedules.kernels.conv.plan import plan, plan_direct
from selfbyoc.schedules.kernels.conv.pointwise.plan import IN_TASK, PointwisePlan
from selfbyoc.tvm import make_target

SSE, AVX2 = (
    Machine(16, 16, fused=False, copies=True),
    Machine(32, 16, multiply_adds=2, loads=2, latency=4),
)
AVX512 = Machine(64, 32, multiply_adds=2, loads=2, latency=4, l2_bytes=1 << 20, broadcasts=True)
NEON = Machine(16, 32, multiply_adds=2, loads=2, latency=4)
MACHINES = {"sse": SSE, "avx2": AVX2, "avx512": AVX512, "neon": NEON}

# Input channels, height and width, output channels, window, stride.
LAYERS = {
    "resnet": [
        (3, 224, 64, 7, 2), (64, 56, 64, 1, 1), (64, 56, 256, 1, 1), (256, 56, 128, 1, 1),
        (128, 56, 128, 3, 2), (256, 56, 512, 1, 2), (512, 28, 128, 1, 1), (1024, 14, 256, 1, 1),
        (256, 14, 1024, 1, 1), (512, 14, 512, 3, 2), (2048, 7, 512, 1, 1), (512, 7, 2048, 1, 1),
        (512, 7, 512, 3, 1),
    ],
    "googlenet": [
        (192, 28, 16, 1, 1), (16, 28, 32, 5, 1), (480, 14, 192, 1, 1), (832, 7, 384, 1, 1),
        (832, 7, 48, 1, 1), (48, 7, 128, 5, 1),
    ],
    "squeezenet": [
        (3, 224, 64, 3, 2), (64, 55, 16, 1, 1), (16, 55, 64, 1, 1), (16, 55, 64, 3, 1),
        (512, 13, 64, 1, 1), (512, 13, 1000, 1, 1),
    ],
}  # fmt: skip
ALL = [pytest.param(sizes, id="-".join(map(str, sizes))) for v in LAYERS.values() for sizes in v]


def layer(sizes, batch=1, **more):
    channels, width, out, window, stride = sizes
    pad = window // 2
    after = (width + 2 * pad - window) // stride + 1
    attrs = {"strides": (stride,) * 2, "padding": (pad,) * 4, "dilation": (1, 1), "groups": 1}
    attrs |= more
    kernel = (out, channels // attrs["groups"], window, window)
    image, result = (batch, channels, width, width), (batch, out, after, after)
    return Layer("conv2d", image, kernel, result, attrs, "float32", row_blocks(out))


def tasks(layer, found):
    """Parallel tasks of the products."""
    images, blocks = layer.out[0], layer.blocks[0]
    if isinstance(found, PixelPlan):
        return images * blocks * found.lanes.chunks
    if isinstance(found, ChannelPlan):
        return images * blocks // found.pair * (1 if found.blocks_alone else found.rows)
    groups = images * -(-found.tiles // found.step)
    return groups if found.panels == IN_TASK else groups * blocks


def busy(count, cores):
    """The share of the cores' time that is used, where all tasks are equal."""
    return count / (-(-count // cores) * cores)


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("sizes", ALL)
def test_tiles_fit_the_registers(name, sizes):
    cpu, one = MACHINES[name], layer(sizes)
    found = plan_direct(one, cpu)
    assert found.tile.fits(cpu)
    assert found.vector == cpu.lanes("float32")
    assert found.tile.efficiency(cpu) > 0.85
    if isinstance(found, ChannelPlan):
        assert one.blocks[0] % found.pair == 0
    else:
        assert one.blocks[1] % found.tile.rows == 0


@pytest.mark.parametrize("cores", [1, 8, 16, 64])
@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("sizes", ALL)
def test_no_core_is_idle_where_there_is_work(name, cores, sizes):
    cpu, one = replace(MACHINES[name], cores=cores), layer(sizes)
    count = tasks(one, plan_direct(one, cpu))
    # A row of one block of channels, or a tile of pixels, is the smallest task.
    pixels = one.out[2] * one.out[3]
    most = one.blocks[0] * min(one.out[2], max(1, pixels // (4 * cpu.lanes("float32"))))
    assert busy(count, cores) >= (0.75 if most >= 4 * cores else 0.5 * min(1, most / cores)), count


def test_packed_weights_are_the_same_for_every_cpu():
    assert row_blocks(64) == (4, 16)
    assert row_blocks(1000) == (64, 16)  # an even number of many
    assert row_blocks(24) == (2, 12)
    for channels in range(1, 200):
        blocks, rows = row_blocks(channels)
        assert channels <= blocks * rows <= max(1.34 * channels, channels + 3)
        assert rows <= 8 or any(rows % r == 0 for r in (3, 4, 5))


@pytest.mark.parametrize(
    ("name", "tile"), [("sse", (4, 2)), ("avx2", (4, 3)), ("avx512", (8, 3)), ("neon", (8, 3))]
)
def test_the_tiles_of_a_block_of_sixteen(name, tile):
    found = plan_direct(layer((64, 56, 64, 1, 1)), MACHINES[name])
    assert (found.tile.rows, found.tile.vectors) == tile


def test_the_forms():
    """Pixels of a large image, channels of a small one; padded rows under a window."""
    cpu = machine(make_target({"kind": "llvm", "mcpu": "haswell", "num-cores": 2}))
    large = plan_direct(layer((256, 56, 64, 1, 1)), cpu)
    assert str(large) == (
        "flat pixels packed in each task, register tile 4 x 3 vectors, 6 tiles a task, "
        "pixels outermost"
    )
    small = plan_direct(layer((512, 7, 2048, 1, 1)), cpu)
    assert str(small) == (
        "channels as lanes, register tile 5 x 2 vectors, tasks are blocks of channels, "
        "the next weights prefetched"
    )
    window = plan_direct(layer((64, 56, 64, 3, 2)), cpu)
    assert str(window) == (
        "pixels under a window packed in each task, register tile 4 x 3 vectors, 6 tiles a task, "
        "pixels outermost"
    )
    grouped = plan_direct(layer((64, 56, 64, 3, 2), groups=2), cpu)
    assert str(grouped) == (
        "padded rows of pixels, register tile 4 x 3 vectors, 7 rows a task, 9 tiles of 24 pixels"
    )


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize(("width", "stride"), [(2, 1), (4, 1), (4, 2), (7, 2)])
def test_the_pixels_of_a_small_image_are_one_row(name, width, stride):
    """Its rows alone would leave most lanes, or most registers, without use."""
    found = plan_direct(layer((512, width, 512, 3, stride)), MACHINES[name])
    assert isinstance(found, ChannelPlan)
    assert found.is_flat
    assert not found.is_even, "the next pixel may be in the next row: only unrolled is it known"
    places = [int(found.lane(0, x)) for x in range(found.width)]
    rows, columns = found.size
    starts = [y * stride * found.lanes.pitch for y in range(rows)]
    assert places == [start + x * stride for start in starts for x in range(columns)]


def test_the_plans_of_a_composite_are_one_value():
    attrs = {"strides": (1, 1), "padding": (1,) * 4, "dilation": (1, 1), "groups": 1}
    attrs |= {"data_layout": "NCHW", "kernel_layout": "OIHW", "out_layout": "NCHW"}
    image, kernel = ((1, 3, 224, 224), "float32"), ((32, 3, 3, 3), "float32")
    hidden, second = ((1, 32, 224, 224), "float32"), ((32, 32, 3, 3), "float32")
    infos = [
        describe("conv2d", "conv2d", attrs, [image, kernel], [hidden]),
        describe("conv2d_1", "conv2d", attrs, [hidden, second], [hidden]),
    ]
    found = plan(Ops(infos), AVX2)
    assert found == plan(Ops(infos), AVX2)
    assert hash(found) == hash(plan(Ops(infos), AVX2))
    assert isinstance(found.of("conv2d_1"), PointwisePlan)
    assert found.of("relu") is None
    # Without the names: partitioning renames the ops, and the text stays.
    first, second = str(found).split("; ")
    assert (first, second) == (str(found.of("conv2d")), str(found.of("conv2d_1")))
    assert first.startswith("pixels under a window packed in each task, register tile")
    pair = melted(Ops(infos), AVX2)
    assert isinstance(pair, Melted)
    assert "melted, " in str(pair)
    # A block of the intermediate is in half of a core's L2.
    assert 4 * 32 * pair.lanes <= AVX2.l2_bytes // 2


def test_a_task_of_pixels_reads_a_panel_in_cache():
    """A panel is packed once for all blocks of channels that read it."""
    found = plan_direct(layer((256, 56, 64, 1, 1)), replace(AVX2, cores=2))
    assert isinstance(found, PointwisePlan)
    assert found.panels == IN_TASK
    assert 4 * 256 * found.lanes <= AVX2.l1_bytes
