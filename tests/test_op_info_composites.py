"""Op info of every built-in composite, before and after its own schedule."""

from dataclasses import replace

import pytest
from harness import model, random_args

import selfbyoc
from selfbyoc import BUILTIN, host_target, op_info
from selfbyoc._tvm import GENERATION
from selfbyoc.analysis.kernels import kernels
from selfbyoc.codegen.accesses import accesses_of


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
