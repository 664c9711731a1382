"""What a new form of convolution takes: its own plan, compute and schedule, and no more."""

from dataclasses import replace
from pathlib import Path

import new_form
import pytest
from harness import assert_close, run_case

from selfbyoc import BUILTIN, Case, op
from selfbyoc.language.kernel import Kernel
from selfbyoc.schedules.kernels.conv import forms, kernel
from selfbyoc.schedules.kernels.conv.layer import Layer
from selfbyoc.schedules.kernels.conv.plan import ConvPlans

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
    page = Path(__file__).parents[3] / "docs" / "makers" / "kernel-families.md"
    told = f"{len(lines)} lines, {len(own)} without imports and blank ones"
    assert told in page.read_text(encoding="utf-8")
