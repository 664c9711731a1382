"""Plans of products of rows for several machines: registers, caches, cores; and how they read."""

from dataclasses import replace

import pytest

from selfbyoc.machine import machine
from selfbyoc.schedules.kernels.rows.normal import normal_plan
from selfbyoc.schedules.kernels.rows.plan import LEAST_PIECE, passes_over, plan_rows, product_plan
from selfbyoc.schedules.kernels.rows.rowwise import rowwise_plan
from selfbyoc.schedules.steps.tiles import BLOCK
from selfbyoc.tvm import make_target

MACHINES = {
    "SSE": machine(make_target("llvm -mcpu=x86-64")),
    "AVX2": machine(make_target("llvm -mcpu=znver2")),
    "AVX-512": machine(make_target("llvm -mcpu=cascadelake")),
    "NEON": machine(make_target("llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1")),
}
# (rows, depth, units)
PRODUCTS = [(128, 768, 3072), (128, 3072, 768), (512, 768, 3072), (197, 768, 768), (16, 768, 3072)]
every_machine = pytest.mark.parametrize("name", MACHINES)
every_product = pytest.mark.parametrize(("rows", "depth", "units"), PRODUCTS)


def plan_for(cpu, rows, depth, units):
    found = plan_rows((rows,), depth, units, "float32", cpu)
    return product_plan(found, depth, units, "float32", cpu, "outputs")


@every_machine
@every_product
def test_the_register_tile_fits_and_keeps_the_core_busy(name, rows, depth, units):
    cpu = MACHINES[name]
    plan = plan_for(cpu, rows, depth, units)
    assert plan.tile.fits(cpu)
    assert plan.tile.sums >= cpu.in_flight
    assert plan.tile.vectors * cpu.lanes("float32") == plan.wide * BLOCK
    assert plan.rows.height == plan.tile.rows


@every_machine
@every_product
def test_few_rows_are_copies_and_pieces_stay_in_cache(name, rows, depth, units):
    cpu = MACHINES[name]
    plan = plan_for(cpu, rows, depth, units)
    assert rows <= plan.rows.padded <= 1.13 * rows
    assert plan.size * plan.pieces == depth
    assert plan.size >= LEAST_PIECE
    assert plan.size * plan.wide * BLOCK * 4 <= cpu.l1_bytes
    assert plan.group * plan.tile.rows * plan.size * 4 <= cpu.l2_bytes


@every_machine
@every_product
@pytest.mark.parametrize("cores", [1, 8, 16, 64])
def test_no_core_is_idle_for_long(name, rows, depth, units, cores):
    plan = plan_for(replace(MACHINES[name], cores=cores), rows, depth, units)
    each = -(-plan.tasks // cores)
    assert plan.parallel
    assert plan.tasks >= cores
    assert each * cores <= 1.34 * plan.tasks


@every_machine
@pytest.mark.parametrize("cores", [1, 8, 16, 64])
def test_rows_are_normalised_by_every_core(name, cores):
    cpu = replace(MACHINES[name], cores=cores)
    plan = rowwise_plan((128,), 768, cpu)
    assert plan.parallel
    assert 128 // plan.at_once >= cores
    assert plan.partial % cpu.lanes("float32") == 0


def test_two_products_share_their_tiles_of_rows():
    cpu = MACHINES["AVX2"]
    rows = plan_rows((128,), 768, 3072, "float32", cpu)
    second = product_plan(rows, 3072, 768, "float32", cpu, "outputs")
    assert second.rows == rows
    assert second.tile.rows == rows.height


def test_rows_that_l2_does_not_hold_go_group_by_group():
    cpu = replace(MACHINES["AVX2"], cores=2)
    few, many = plan_for(cpu, 64, 768, 768), plan_for(cpu, 512, 768, 768)
    assert not few.rows_first
    assert many.rows_first
    assert many.group * many.tile.rows * 768 * 4 <= cpu.l2_bytes


def test_rows_that_l3_does_not_hold_pass_over_the_weight_in_turn():
    cpu = replace(MACHINES["AVX-512"], cores=2, l3_bytes=32 << 20)

    def passes(*lead):
        return passes_over(plan_rows(lead, 768, 3072, "float32", cpu), 3072, cpu)

    assert passes(2, 197) == passes(128) == 0
    assert passes(16, 197) == passes(4, 512) == 1  # for each of them
    rows = plan_rows((4096,), 768, 3072, "float32", cpu)
    many = passes(4096)
    assert rows.each % many == 0
    assert rows.padded // many * 3072 * 4 <= cpu.l3_bytes // 4
    assert passes(1000, 16) == 0  # too few rows of each


def test_a_task_normalises_its_rows_where_l2_holds_the_weight():
    cpu = replace(MACHINES["AVX-512"], cores=2)
    assert normal_plan((128, 128), 256, "float32", cpu).product.melted
    assert not normal_plan((128, 3072), 768, "float32", cpu).product.melted
    assert not normal_plan((8, 128), 256, "float32", cpu).product.melted  # too few rows


def test_a_plan_reads_well():
    cpu = replace(MACHINES["AVX2"], cores=2)
    assert str(plan_for(cpu, 512, 768, 3072)) == (
        "register tile 6 x 2 vectors, 256 of k at a time, 1536 tasks of 66 rows x 16 columns"
    )
    assert str(rowwise_plan((128,), 768, cpu)) == "4 rows at once, 8 partial sums each"
    found = str(normal_plan((128, 64), 256, "float32", cpu))
    assert "x all columns; normalised in front of its task:" in found


def test_plans_are_frozen_values():
    """Equal plans of equal ops are equal, and hash alike: a cache may key by them."""
    cpu = MACHINES["AVX2"]
    one, two = (normal_plan((128, 64), 256, "float32", cpu) for _ in range(2))
    assert one == two
    assert hash(one) == hash(two)
