"""Op info of every built-in composite, before and after its own schedule."""

from dataclasses import replace

import pytest
from harness import model, random_args
from layouts import module, params

import selfbyoc
from selfbyoc import BUILTIN, UNKNOWN, host_target, op_info
from selfbyoc.analysis.kernels import kernels
from selfbyoc.codegen.info.accesses import accesses_of
from selfbyoc.tvm import GENERATION, Schedule, get_block, region_buffer


def bare(info):
    """What scheduling cannot change."""
    return replace(info, blocks=(), within="")


def first_case(composite):
    return next((c for c in composite.cases if GENERATION in c.generations), None)


def kernel(composite, case):
    mod = model(composite, case, random_args(case))
    parted = selfbyoc.partition_for_tefuse(mod, composites=[composite])
    return next(iter(kernels(parted)))


@pytest.mark.parametrize("composite", BUILTIN, ids=lambda c: c.name)
def test_scheduling_changes_only_the_blocks(composite):
    case = first_case(composite)
    if case is None:
        pytest.skip("no case on this generation")
    stacked, scheduled = kernel(composite, case).schedule(host_target())
    func = scheduled.mod["main"]
    before, after = op_info(stacked.func), op_info(func)
    assert before == stacked.ops
    assert [bare(info) for info in after] == [bare(info) for info in before]
    blocks = [block.name for block in accesses_of(func).blocks]
    assert sorted(name for info in after for name in info.blocks) == sorted(blocks)
    names = {info.name for info in after}
    for info in after:
        assert bool(info.blocks) != bool(info.within), info
        assert not info.within or info.within in names


def test_a_packed_weight_that_is_packed_again():
    """Its parameter never had the op's own axes: moved, it is not known."""
    dense = next(c for c in BUILTIN if c.name == "dense")
    stacked, _ = kernel(dense, dense.cases[1]).schedule(host_target())
    held = module(stacked.func)
    sch = Schedule(held)
    assert op_info(sch) == stacked.ops
    weight = next(i for i, p in enumerate(params(stacked.func)) if len(p.shape) == 3)
    block = get_block(sch, "products")
    reads = [region_buffer(r) for r in sch.get(block).reads]
    position = next(i for i, b in enumerate(reads) if b.same_as(params(sch.mod["main"])[weight]))
    sch.transform_layout(block, ("read", position), lambda panel, k, lane: (k, panel, lane))
    info = op_info(sch)[0]
    assert info.inputs[1].layout is UNKNOWN
    assert info.inputs[0].layout is None
