"""Plans of Winograd convolutions on several machines: nothing is built."""

from dataclasses import replace

import numpy as np
import pytest

from selfbyoc.language.decisions import for_every_size_of
from selfbyoc.machine import MOST_FEEDING_CORES, Machine
from selfbyoc.schedules.kernels.winograd import tasks
from selfbyoc.schedules.kernels.winograd.plan import form_of, plan
from selfbyoc.schedules.kernels.winograd.tiling import tilings

PLAIN = {"strides": (1, 1), "dilation": (1, 1), "groups": 1, "padding": (1, 1, 1, 1)}
ZEN5 = Machine(64, 32, 2, 48 << 10, 1 << 20, 32 << 20, 2, 2, 4, True, True, 5.0, l3_bandwidth=15.0)
ZEN3 = Machine(
    32, 16, 2, 32 << 10, 512 << 10, 32 << 20, 2, 2, 4, True, False, 5.6, l3_bandwidth=16.8
)
SSE = Machine(16, 16, 4, 32 << 10, 256 << 10, 8 << 20, 1, 1, 5, False, False, 4.0, copies=True)
NEON = Machine(16, 32, 8, 64 << 10, 1 << 20, 32 << 20, 2, 2, 4, True, False, 4.0)
KINDS = {"AVX-512": ZEN5, "AVX2": ZEN3, "SSE": SSE, "NEON": NEON}


def with_cores(cpu, cores):
    """As many cores, and as much bandwidth for each."""
    more = max(1, cores // MOST_FEEDING_CORES)
    memory, l3 = cpu.memory_bandwidth * more, cpu.l3_bandwidth * more
    return replace(cpu, cores=cores, memory_bandwidth=memory, l3_bandwidth=l3)


MACHINES = [
    pytest.param(with_cores(cpu, cores), id=f"{name}-{cores}")
    for name, cpu in KINDS.items()
    for cores in (1, 8, 16, 64)
]
SHAPES = [  # channels, size, batch, channels of the result
    (64, 56, 1, 64),
    (64, 112, 1, 64),
    (128, 28, 1, 128),
    (256, 14, 1, 256),
    (64, 28, 4, 64),
    (24, 33, 1, 40),
]


def planned(channels, size, batch=1, out=None, cpu=ZEN5, window=(3, 3), packed=None, **attrs):
    out, ahead = out or channels, attrs.pop("ahead", True)
    image, kernel, result = (
        (batch, channels, size, size),
        (out, channels, *window),
        (batch, out, size, size),
    )
    return plan(image, kernel, {**PLAIN, **attrs}, result, cpu, "conv", packed, ahead)


def form(*args, **kwargs):
    found = planned(*args, **kwargs)
    return found.m if found else 0


@pytest.fixture(params=MACHINES)
def cpu(request):
    return request.param


@pytest.fixture(params=SHAPES, ids=str)
def shape(request):
    return request.param


@pytest.fixture
def found(cpu, shape):
    made = planned(*shape, cpu=cpu)
    assert made is not None
    return made


def test_sums_fit_in_registers_and_blocks_in_caches(found, cpu, shape):
    p = found.products
    assert p.registers.sums + p.registers.vectors + 1 <= cpu.vector_registers
    assert 4 * p.tiles * p.blocks * p.lanes <= tasks.STACK_BYTES
    assert found.out_blocks % p.blocks == 0
    assert found.steps * p.tiles - p.tiles < found.tiling.block <= found.steps * p.tiles
    sums = 4 * found.tiling.size**2 * found.steps * p.tiles * p.blocks * 16
    assert sums <= cpu.l2_bytes
    if found.tasks_are_blocks:
        inputs = 4 * found.tiling.size**2 * found.tiling.block * shape[0]
        assert inputs <= 2 * cpu.l2_bytes


def test_no_core_is_idle_where_there_is_work(found, cpu):
    steps = 1 if found.tasks_are_blocks else found.out_blocks // found.products.blocks
    count = found.tiling.tasks * steps
    least = found.tiling.count // 16 * found.out_blocks  # 16 tiles and 16 channels are a task
    assert count >= 0.6 * min(cpu.cores, least)
    least = min(least, cpu.cores)
    assert count / (-(-count // cpu.cores) * cpu.cores) >= 0.6 * least / cpu.cores


def test_multiply_adds_are_kept_busy(found, cpu):
    """Of what the units can do, with the tiles that are computed in vain."""
    p, t = found.products, found.tiling
    use = p.registers.efficiency(cpu) * t.count / (t.tasks * found.steps * p.tiles)
    assert use >= (0.55 if cpu.cores > 16 else 0.65)


def test_a_tile_of_two_vectors_where_there_are_sixteen_registers():
    assert str(planned(128, 28, cpu=ZEN3).products) == "register tile 5 x 2 vectors"
    assert str(planned(128, 28, cpu=ZEN5).products) == "register tile 7 x 2 vectors"


def test_a_plan_reads_well():
    assert str(planned(64, 56)) == (
        "Winograd F(4, 3), blocks of 1 x 14 tiles, register tile 7 x 2 vectors, a task is a block "
        "of tiles"
    )
    text = str(planned(512, 7, batch=4))
    assert "F(4, 3), blocks of 4 images of 2 x 2 tiles" in text
    assert text.endswith("a task is a step of channels")
    assert hash(planned(64, 56)) == hash(planned(64, 56))


@pytest.mark.parametrize(
    ("channels", "size", "batch", "m"),
    [
        (64, 56, 1, 4),
        (128, 28, 1, 4),
        (256, 14, 1, 2),
        (256, 14, 4, 4),
        (512, 7, 1, 2),
        (512, 7, 4, 4),
        (512, 4, 1, 0),
        (64, 3, 1, 0),
    ],
)
def test_weights_must_be_worth_reading(channels, size, batch, m):
    """Many pixels take the large weights of F(4, 3), fewer F(2, 3), few the direct convolution."""
    assert form(channels, size, batch) == m


def test_a_machine_with_little_bandwidth_reads_small_weights():
    starved = replace(ZEN5, memory_bandwidth=0.5, l3_bandwidth=1.5)
    assert [form(c, s, cpu=starved) for c, s in ((256, 14), (512, 7))] == [0, 0]
    assert form(256, 14, cpu=ZEN3) == 4  # half the multiply-adds, as much bandwidth
    assert form(64, 112, cpu=starved) == 4  # weights are read once for many pixels


@pytest.mark.parametrize(
    ("channels", "size", "attrs"),
    [
        (64, 56, {"strides": (2, 2)}),
        (64, 56, {"dilation": (2, 1)}),
        (64, 56, {"groups": 2}),
        (3, 56, {}),
        (16, 3, {}),
    ],
)
def test_where_the_direct_convolution_stays(channels, size, attrs):
    assert form(channels, size, out=64, **attrs) == 0


def test_taps_that_are_apart_make_images_of_their_own():
    found = planned(64, 57, out=64, dilation=(2, 2))
    assert (found.m, found.apart) == (4, 2)
    assert found.tiling.batch == 4
    assert (found.tiling.down, found.tiling.along) == (8, 8)  # 29 of 57 rows and columns


@pytest.mark.parametrize(
    ("size", "kernel", "m"),
    [(27, (5, 5), 2), (27, (5, 3), 0), (27, (7, 7), 0), (27, (1, 1), 0), (4, (5, 5), 0)],
)
def test_windows_of_five_by_five(size, kernel, m):
    assert form(32, size, out=96, window=kernel) == m


def test_what_was_packed_for_another_machine_is_read_as_it_lies():
    for m in (2, 4):
        packed = (m + 2, m + 2, 16, 256, 16)
        assert form_of(packed, (256, 256, 3, 3)) == m
        assert form(256, 14, packed=packed) == m
    assert planned(256, 14, packed=(16, 256, 3, 3, 16)) is None


def test_a_weight_that_is_no_constant_is_not_transformed():
    assert planned(64, 56, ahead=False) is None


@pytest.mark.parametrize("cpu", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("out", [(1, 64, 56, 56), (2, 16, 13, 9), (1, 16, 4, 4), (6, 16, 7, 7)])
def test_blocks_hold_every_tile_once(out, cpu):
    tiles = {(n, y // 4, x // 4) for n, y, x in np.ndindex(out[0], *out[2:])}
    for found in tilings(out, 4, 3, cpu):
        assert found.count == len(tiles)
        images, chunks = found.blocks
        assert found.images * images == out[0]
        assert found.rows * chunks >= found.down > found.rows * (chunks - 1)


@pytest.mark.parametrize("many", [8, 131])
def test_a_symbolic_batch_is_packed_for_small_ones_too(many):
    """F(4, 3) is the best of many images of 7x7, and for one it waits for weights."""
    cpu = replace(ZEN5, memory_bandwidth=4.0)
    assert [form(512, 7, batch, cpu=cpu) for batch in (1, 4, many)] == [0, 2, 4]
    with for_every_size_of([many]):
        assert form(512, 7, many, cpu=cpu) == 2
    with for_every_size_of([many]):  # the best of each batch
        assert form(64, 56, many, cpu=cpu) == 4
