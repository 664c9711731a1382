"""What a new form of convolution takes: its own plan, compute and schedule, and no more."""

from dataclasses import replace
from pathlib import Path
from typing import get_args

import new_form
import pytest
from harness import assert_close, run_case

from selfbyoc import BUILTIN, Case, op
from selfbyoc.language.decisions import deciding
from selfbyoc.language.kernel import Kernel
from selfbyoc.schedules.kernels.conv import forms, kernel
from selfbyoc.schedules.kernels.conv.layer import Layer
from selfbyoc.schedules.kernels.conv.plan import ConvPlan, ConvPlans
from selfbyoc.schedules.steps.blocks import facts
from selfbyoc.schedules.steps.candidates import decided
from selfbyoc.schedules.steps.registers import sum_in_tile
from selfbyoc.schedules.steps.tensors import View, reduce_axes
from selfbyoc.tvm import Schedule, get_block, te, tvm

VECTORIZED, UNROLLED = 2, 3  # ForKind
(CONV,) = [composite for composite in BUILTIN if composite.name == "conv2d"]
CASES = {
    "padded": ((1, 5, 9, 7), (19, 5, 3, 3), {"padding": (1, 1, 1, 1)}),
    "strided": ((2, 4, 11, 10), (32, 4, 3, 2), {"strides": (2, 1), "padding": (1, 0, 0, 1)}),
    "dilated": ((1, 3, 12, 12), (16, 3, 3, 3), {"dilation": (2, 2)}),
    "1x1": ((1, 8, 6, 6), (24, 8, 1, 1), {}),
}


def plan(ops, machine):
    found = [(c.name, new_form.planned(Layer.of(c), machine)) for c in ops.of("conv2d")]
    return ConvPlans(tuple(found), machine)


@pytest.mark.parametrize("name", CASES)
def test_a_form_is_a_plan_a_compute_and_a_schedule(monkeypatch, name):
    monkeypatch.setitem(forms._BY_PLAN, new_form.RowPlan, new_form.ROWS)
    made = Kernel(plan, {"conv2d": kernel.conv2d}, kernel.schedule, {"weight": kernel.pack})
    own = replace(CONV, name="conv2d_by_rows", kernel=made, cases=())
    image, weight, attrs = CASES[name]
    case = Case(
        lambda x, weight, bias: op.relu(op.bias_add(op.conv2d(x, weight, **attrs), bias)),
        x=image, weight=weight, bias=(weight[0],), constants=("weight", "bias"),
    )  # fmt: skip
    run = run_case(own, case)
    assert run.counts == {"conv2d_by_rows": 1}
    assert_close(run)


def test_that_takes_as_many_lines_as_the_page_says():
    lines = Path(new_form.__file__).read_text(encoding="utf-8").splitlines()
    own = [line for line in lines if line and "import " not in line]
    page = (
        Path(__file__)
        .parents[3]
        .joinpath("docs", "makers", "kernel-families.md")
        .read_text("utf-8")
    )
    assert f"{len(lines)} lines, {len(own)} without imports and blank ones" in page


def test_each_plan_of_a_convolution_has_one_form():
    known = [form.plan for form in forms.FORMS]
    assert len(set(known)) == len(known)
    assert set(get_args(ConvPlan)) == set(known)


def test_of_values_with_one_key_the_best_is_decided_for():
    found = [(2, "best"), (1, "second"), (2, "worse"), (3, "third"), (4, "last")]
    key = lambda value: value[0]  # noqa: E731
    assert decided("which", found, key) == (2, "best")
    with deciding({"which": 1}) as asked:
        assert decided("which", found, key) == (1, "second")
    assert asked.made["which"].default == 2
    assert len(asked.made["which"].candidates) == 3


def product():
    """[12, 32] sums over 5, in tiles of 4 x 16."""
    x, w = te.placeholder((12, 5), name="x"), te.placeholder((5, 32), name="w")
    turned = View((5, 12), x.dtype, lambda k, i: x(i, k))
    (k,) = reduce_axes(k=5)
    return x, w, te.compute((12, 32), lambda i, j: te.sum(turned(k, i) * w(k, j), axis=k), "y")


@pytest.mark.parametrize("lanes", [8, 16])
def test_a_tile_of_sums(lanes):
    sch = Schedule(tvm.IRModule({"main": te.create_prim_func(list(product()))}))
    block = get_block(sch, "y")
    i, j, k = sch.get_loops(block)
    (io, ii), (jo, ji) = sch.split(i, [None, 4]), sch.split(j, [None, 16])
    sch.reorder(io, jo, k, ii, ji)
    sum_in_tile(sch, block, [k], [ii, ji], lanes)()
    rows, vectors = 4, 16 // lanes
    loops = [sch.get(loop) for loop in sch.get_loops(block)]
    extents = [int(loop.extent) for loop in loops]
    assert extents == [3, 2, 5, rows, *([vectors] if vectors > 1 else []), lanes]
    kinds = [int(loop.kind) for loop in loops[3:]]
    assert kinds == [UNROLLED] * (len(loops) - 4) + [VECTORIZED]
    assert len(facts(sch)) == 2  # the sums start at zero in a block of their own
