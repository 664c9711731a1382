"""Plans of attention for CPUs of all kinds: what fits the registers, and no core without work."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from selfbyoc.language.decisions import deciding
from selfbyoc.machine import Machine, machine
from selfbyoc.schedules.kernels.attention.forms import BlockPlan, FewPlan
from selfbyoc.schedules.kernels.attention.plan import plan
from selfbyoc.schedules.kernels.attention.split_plan import SplitPlan
from selfbyoc.schedules.steps.tiles import RegisterTile
from selfbyoc.tvm import make_target

CPUS = {
    "sse": Machine(16, 16, fused=False, copies=True),
    "avx2": Machine(32, 16, multiply_adds=2, loads=2, latency=4),
    "avx512": Machine(64, 32, multiply_adds=2, loads=2, latency=4, broadcasts=True),
    "neon": Machine(16, 32, multiply_adds=2, loads=2, latency=4),
}
CORES = (1, 8, 16, 64)
SHAPES = [(12, 128, 64), (12, 512, 64), (12, 197, 64), (3, 197, 64), (48, 64, 32), (5, 75, 40)]


def cpu(name, cores=1):
    """A machine of one of the kinds of CPU."""
    known = CPUS[name]
    return Machine(**{**vars(known), "cores": cores})


def planned(cpu, *shape, **laid):
    """The plan of softmax(q k^T) v."""
    return plan(products(*shape, **laid), cpu)


def products(batch, queries, depth, keys=0, columns=0, key_rows=True):
    """The ops of softmax(q k^T) v that a plan asks about."""
    keys, columns = keys or queries, columns or depth
    plain = {"transpose_a": False, "transpose_b": False}
    turned = {"transpose_a": False, "transpose_b": key_rows}
    laid = (keys, depth) if key_rows else (depth, keys)
    q, k, v = ((batch, *s) for s in ((queries, depth), laid, (keys, columns)))
    scores = (batch, queries, keys)
    ops = [
        SimpleNamespace(attrs=turned, inputs=[(q, ""), (k, "")], outputs=[(scores, "")]),
        SimpleNamespace(attrs=plain, inputs=[(scores, ""), (v, "")], outputs=[]),
    ]
    return SimpleNamespace(of=lambda kind: ops if kind == "batch_matmul" else [])


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", CPUS)
def test_tiles_fit_the_registers_and_come_out_even(name, shape):
    known, found = cpu(name), planned(cpu(name), *shape)
    for tile in (found.scores, found.weighted):
        held = min(tile.rows, tile.vectors) + 1
        assert tile.sums + held <= known.vector_registers
        assert tile.sums >= known.in_flight, "the core waits for its own sums"
    assert found.lanes % (found.vector * found.scores.vectors) == 0
    assert found.lanes % found.weighted.rows == 0
    assert found.width % (found.vector * found.weighted.vectors) == 0
    assert found.blocks * found.lanes - found.shape.queries < found.lanes
    assert 0 <= found.key_rows - found.shape.keys < found.scores.rows


@pytest.mark.parametrize("cores", CORES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", CPUS)
def test_no_core_is_idle_where_there_is_work(name, shape, cores):
    found = planned(cpu(name, cores), *shape)
    assert found.parallel

    def of_the_busiest_core(lanes):
        return lanes * -(-shape[0] * -(-shape[1] // lanes) // cores)

    least = min(map(of_the_busiest_core, range(found.vector, 49, found.vector)))
    assert of_the_busiest_core(found.lanes) <= 1.3 * least


def test_blocks_grow_with_the_work_and_shrink_with_the_cores():
    lanes = [planned(cpu("avx2", cores), 12, 128, 64).lanes for cores in (1, 96)]
    assert lanes == [32, 16]
    assert planned(cpu("avx512"), 12, 128, 64).lanes == 32
    # 197 queries are 25 vectors of AVX2: blocks of 5 leave 3 lanes over, blocks of 4 leave 27.
    assert planned(cpu("avx2"), 12, 197, 64).lanes == 40


def test_sixteen_registers_hold_three_keys_by_four_vectors():
    found = planned(cpu("avx2"), 12, 128, 64)
    assert str(found) == (
        "32 queries a task, 48 tasks, register tiles 3 keys x 4 vectors and 4 queries x 2 vectors"
    )


@pytest.mark.parametrize("name", CPUS)
def test_keys_that_lie_apart_are_packed_where_many_blocks_read_them(name):
    def packed(queries, keys, **laid):
        return planned(cpu(name), 12, queries, 64, keys=keys, **laid).packed

    assert packed(512, 512, key_rows=False)
    assert not packed(512, 512)  # rows one after the other
    assert not packed(64, 64, key_rows=False)  # L1 holds them
    assert not packed(16, 512, key_rows=False)  # one block reads them
    told = str(planned(cpu(name), 12, 512, 64, key_rows=False))
    assert told.endswith(", keys packed")


def test_few_queries_are_a_task_each():
    found = planned(cpu("avx2"), 12, 1, 64, keys=77)
    assert isinstance(found, FewPlan)
    assert (found.depth_lanes, found.key_lanes) == (16, 11)
    assert str(found) == "a query a task, 16 partial sums a score"
    assert not found.parallel
    assert planned(cpu("avx2"), 12, 2, 64, keys=770).parallel


@pytest.mark.parametrize("queries", [1, 2, 3, 7, 13, 16])
@pytest.mark.parametrize("name", CPUS)
def test_few_queries_meet_blocks_of_keys_of_an_open_number(name, queries):
    known = cpu(name)
    with deciding({}, fitted=True, lasting=True, sizes=[300]):
        found = planned(known, 2, queries, 64, keys=300)
    for others in ({"queries": 17, "keys": 300}, {"queries": 300}):
        with deciding({}, fitted=True, lasting=True, sizes=[300]):
            assert isinstance(planned(known, 2, depth=64, **others), BlockPlan)
    assert isinstance(found, SplitPlan)
    assert (found.block, found.blocks, found.tasks) == (64, 5, 10)
    assert queries <= found.rows <= found.lanes <= 16
    for tile in (found.scores, found.weighted):
        assert tile.sums == 1 or tile.fits(known, min(tile.rows, tile.vectors))


@pytest.mark.parametrize("queries", [1, 7, 16])
@pytest.mark.parametrize("name", CPUS)
def test_a_wrong_number_of_such_a_plan_is_a_fault(name, queries):
    known, arguments = cpu(name), (2, queries, 64, 300)
    with deciding({}, fitted=True, lasting=True, sizes=[300]):
        found = planned(known, *arguments)
    assert list(found.faults(products(*arguments), known)) == []
    for wrong in (
        {"block": 72}, {"lanes": found.lanes + 1}, {"vector": 2}, {"depth_steps": 7},
        {"key_steps": 7}, {"depth_lanes": 3}, {"scores": RegisterTile(5, 1)},
        {"scores": RegisterTile(1, 3)}, {"weighted": RegisterTile(1, 3)},
        {"weighted": RegisterTile(20, 1)}, {"shape": replace(found.shape, keys=301)},
    ):  # fmt: skip
        assert list(replace(found, **wrong).faults(products(*arguments), known)), wrong


def test_a_vector_is_as_narrow_as_its_queries():
    with deciding({}, fitted=True, lasting=True, sizes=[300]):
        one = planned(cpu("avx512"), 2, 1, 64, keys=300)
        seven = planned(cpu("avx512"), 2, 7, 64, keys=300)
    assert (one.depth_lanes, seven.depth_lanes, seven.narrow) == (16, 1, 8)
    assert str(one) == "64 keys a task, 10 tasks, 16 partial sums a score"
    assert str(seven) == (
        "64 keys a task, 10 tasks, register tiles 16 x 1 vectors of 8 queries and 7 x 2 vectors of "
        "columns"
    )


def test_little_work_is_not_parallel():
    assert not planned(cpu("avx2", 8), 1, 16, 16).parallel


def test_what_is_decided_is_taken():
    with deciding({"queries_of_a_block": 16, "panels_outside": False}) as decisions:
        found = planned(cpu("avx2"), 12, 128, 64)
    decisions.check_all_asked()
    assert isinstance(found, BlockPlan)
    assert (found.lanes, found.panels_outside) == (16, False)


@pytest.mark.parametrize("mcpu", ["haswell", "cascadelake"])
def test_a_plan_depends_on_nothing_but_the_machine(mcpu):
    target = make_target(f"llvm -mtriple=x86_64-linux-gnu -mcpu={mcpu} -num-cores=2")
    first, second = (planned(machine(target), 12, 128, 64) for _ in range(2))
    assert first == second
    assert hash(first) == hash(second)
