"""A user's own kernel: plan, pack, compute and schedule over one frozen value."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import selfbyoc
from selfbyoc import Case, Composite, Kernel, emit, op
from selfbyoc.errors import CompositeError, ComputeError
from selfbyoc.machine import machine
from selfbyoc.schedules.composites.dense import dense
from selfbyoc.tvm import te, tir

from harness import assert_close, expected, model, random_args, run_case  # isort: skip


@dataclass(frozen=True)
class Plan:
    """Columns of a block of the packed weight; what `pack` is told and the others follow."""

    block: int
    blocks: int
    ahead: bool

    def __str__(self):
        return f"{self.blocks} blocks of {self.block} columns"


@dataclass(frozen=True)
class Stages:
    sums: Any
    result: Any


def plan(ops, machine):
    packing, units = ops.packing(ops.dense, 1), ops.dense.inputs[1][0][0]
    assert packing.arg == "weight"
    block = machine.lanes("float32") if packing.shape is None else packing.shape[-1]
    return Plan(block, -(-units // block), packing.ahead)


def pack(weight, plan):
    units, count = (int(e) for e in weight.shape)

    def element(b, k, lane):
        unit = b * plan.block + lane
        return tir.if_then_else(unit < units, weight(unit, k), tir.const(0, weight.dtype))

    return te.compute((plan.blocks, count, plan.block), element, name="packed")


def compute(x, weight, ops, plan):
    rows, count = (int(e) for e in x.shape)
    k = te.reduce_axis((0, count), name="k")
    sums = te.compute(
        (rows, plan.blocks, plan.block),
        lambda i, b, lane: te.sum(x(i, k) * weight(b, k, lane), axis=k),
        name="anything",
    )
    result = te.compute(
        ops.relu.outputs[0][0],
        lambda i, j: tir.Max(
            sums(i, tir.floordiv(j, plan.block), tir.floormod(j, plan.block)),
            tir.const(0, "float32"),
        ),
        name="anything",
    )
    return Stages(sums, result)


seen = []


def schedule(sch, stages, plan):
    seen.append(plan)
    *_, lane, k = sch.get_loops(stages.sums)
    sch.reorder(k, lane)
    sch.vectorize(lane)
    sch.parallel(sch.get_loops(stages.result)[0])


KERNEL = Kernel(plan, compute, schedule, {"weight": pack})


def composite(kernel=KERNEL, **more):
    def pattern(x, weight):
        return op.relu(op.dense(x, weight))

    return Composite("planned", pattern, kernel=kernel, **more)


RELU = Case(
    lambda x, weight: op.relu(op.dense(x, weight)),
    x=(5, 24), weight=(21, 24), constants=("weight",),
)  # fmt: skip


@pytest.mark.parametrize("constants", [("weight",), ()], ids=["packed-ahead", "packed-at-run-time"])
@pytest.mark.parametrize("units", [32, 21])
def test_one_plan_for_packing_compute_and_schedule(constants, units):
    seen.clear()
    run = run_case(composite(), Case(x=(5, 24), weight=(units, 24), constants=constants))
    assert run.counts == {"planned": 1}
    assert_close(run)
    assert {p.ahead for p in seen} == {bool(constants)}
    lanes = machine(selfbyoc.host_target()).lanes("float32")
    assert {p.block for p in seen} == {lanes}


def test_what_was_packed_for_another_machine_is_computed_as_it_lies():
    """Partitioning that is told nothing packs for the host; the build may be for another CPU."""
    case = Case(x=(5, 24), weight=(21, 24), constants=("weight",))
    mine, args = composite(), random_args(case)
    mod = selfbyoc.partition_for_tefuse(model(mine, case, args), composites=[mine])
    seen.clear()
    (found,) = selfbyoc.build(mod, "llvm")(args["x"])
    np.testing.assert_allclose(found, expected(mine, case, args)[0], rtol=1e-5, atol=1e-5)
    lanes = machine(selfbyoc.host_target()).lanes("float32")
    assert {p.block for p in seen} == {lanes}


def test_a_plan_that_raises_names_the_composite():
    def broken(ops, machine):
        raise ZeroDivisionError("no rows")

    with pytest.raises(ComputeError, match="composite planned: its plan raised ZeroDivisionError"):
        run_case(composite(replace(KERNEL, plan=broken)), Case(x=(5, 24), weight=(8, 24)))


def test_a_kernel_has_its_own_functions():
    with pytest.raises(CompositeError, match="planned: schedule: expected none beside a kernel"):
        composite(schedule=schedule)
    with pytest.raises(CompositeError, match="planned: kernel: expected a Kernel"):
        composite(kernel=plan)


@pytest.mark.parametrize("made", [composite(), dense], ids=lambda c: c.name)
def test_a_copy_with_another_schedule_computes_the_plain_ops(made):
    asked = []

    def mine(sch, ops, target):
        asked.extend(ops)
        for name in ("dense", "relu"):
            sch.parallel(sch.get_loops(getattr(ops, name).block)[0])

    copy = replace(made, schedule=mine)
    run = run_case(copy, RELU)
    assert run.counts == {made.name: 1}
    assert_close(run)
    assert [op.kind for op in asked] == ["dense", "relu"]
    assert (copy.kernel, copy.compute, copy.pack) == (None, None, {})
    assert made.kernel is not None
    assert_close(run_case(replace(made, schedule=None), RELU))  # the default schedule
    assert replace(made, why="a copy").kernel is made.kernel


def test_lint_calls_its_functions_as_they_are_called():
    wrong = composite(replace(KERNEL, schedule=lambda sch: None, plan=lambda ops: None))
    texts = [str(f) for f in selfbyoc.lint(wrong)]
    assert any("plan is called as (ops, machine)" in t for t in texts)
    assert any("schedule for 'llvm' is called as (sch, stages, plan)" in t for t in texts)


def test_explain_and_melting_say_the_plan():
    mine = composite()
    case = Case(x=(5, 24), weight=(21, 24), constants=("weight",))
    mod = model(mine, case, random_args(case))
    lanes = machine(selfbyoc.host_target()).lanes("float32")
    text = f"{-(-21 // lanes)} blocks of {lanes} columns"
    parted = selfbyoc.partition_for_tefuse(mod, target=selfbyoc.host_target(), composites=[mine])
    for found in (selfbyoc.explain(mod, composites=[mine]), selfbyoc.explain(parted)):
        (record,) = found.report.matched
        assert record.plan == text
    two = emit(
        lambda x, w1, w2: op.relu(op.dense(op.relu(op.dense(x, w1)), w2)),
        {"x": (5, 24), "w1": (21, 24), "w2": (21, 21)},
    )  # the second dense is no `dense` by its name in the model
    found = selfbyoc.explain(two, composites=[mine])
    assert [r.plan for r in found.report.matched] == [text, text]
    assert found.report.problems == ()
    (report,) = selfbyoc.melting(parted).kernels
    assert report.level.plan == text
    assert f"plan: {text}" in str(report)
