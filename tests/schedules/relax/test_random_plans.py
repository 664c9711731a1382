"""Plans on drawn shapes, attributes, machines and decisions: `make plans` in small.

Plans know no TVM: one generation is enough.
"""

import itertools
import sys
from collections import Counter
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from random import Random

import pytest
import tvm_ffi
from random_cases import RANDOM, hypothesis

from selfbyoc import BUILTIN
from selfbyoc.machine import Machine
from selfbyoc.tvm import tir

sys.path.insert(0, str(Path(__file__).parents[3] / "tools"))

from plan_draws import asked, builds, cases, machines

st = hypothesis.strategies
FAMILIES = list(asked.families())


def test_every_kernel_is_of_a_family():
    of_families = {c.name for composites in asked.families().values() for c in composites}
    assert of_families == {c.name for c in BUILTIN if c.kernel is not None}


@pytest.mark.parametrize("family", FAMILIES)
@RANDOM
@hypothesis.given(rng=st.randoms(use_true_random=False))
def test_no_plan_has_a_fault(family, rng):
    drawn = asked.draw(family, rng)
    hypothesis.assume(drawn is not None)
    for case, outcome in cases.tried(drawn, rng):
        assert outcome.faults == [], case.to_json()


def some(family, rng, count):
    """Programs of a family, of those that are drawn for sure in the end."""
    found = (asked.draw(family, rng) for _ in itertools.count())
    return list(itertools.islice(filter(None, found), count))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_case_is_text(family):
    """A finding is read again as it was written."""
    rng = Random(1)
    (drawn,) = some(family, rng, 1)
    for case, _ in cases.tried(drawn, rng):
        assert cases.from_text(case.to_json()) == replace(case, told=dict(case.told))


def test_a_program_is_proved(monkeypatch):
    """What is wrong with its accesses is told, and nothing falls back."""
    (drawn,) = some("pool", Random(2), 1)
    asked_for = drawn.program.to_json(), "llvm -mcpu=haswell"
    assert builds.proved(*asked_for) == (builds.PROVED, "")

    real = builds.finished  # each store one element further
    monkeypatch.setattr(builds, "finished", lambda func, target: moved(real(func, target)))
    status, told = builds.proved(*asked_for)
    assert status == builds.OUTSIDE
    assert "element" in told


def moved(func):
    """A finished function whose stores are all one element further on, in the last axis."""

    def change(store):
        *first, last = store.indices
        return tir.BufferStore(store.buffer, store.value, [*first, last + 1])

    return tvm_ffi.structural_map(func, ((tir.BufferStore, change),))


# Decisions of which any is right: what runs in parallel, which loop is outside, what is unrolled.
FREE = {
    "BlockPlan.panels_outside", "BlockPlan.parallel", "BlockPlan.parts", "ChannelPlan.blocks_alone",
    "ChannelPlan.is_flat", "DepthwisePlan.by_rows", "FewPlan.parallel", "PointwisePlan.by_channels",
    "ProductPlan.melted", "ProductPlan.parallel", "ProductPlan.passes",
    "ProductPlan.rows_first", "ResizePlan.by_image", "RowPlan.by_image", "RowwisePlan.parallel",
    "SeparablePlan.parallel", "Window.columns", "Window.rows", "WinogradPlan.tasks_are_blocks",
    "WinogradPlan.transform_columns", "SeparablePlan.in_squares", "QuantizedMatmulPlan.in_vectors",
}  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES)
def test_every_number_of_a_plan_is_looked_at(family):
    """A plan with one number changed has a fault, or the number may be any: so says FREE. A new
    family, or a field, is noticed.
    """
    rng, seen, noticed = Random(7), Counter(), Counter()
    for drawn in some(family, rng, 80):
        _, cpu = machines.draw(rng)
        ops = drawn.ops(dict.fromkeys(drawn.packable))
        plan = drawn.composite.kernel.plan(ops, cpu)
        for path, name, value in numbers(plan):
            others = [not value] if isinstance(value, bool) else [value + 1, value - 1, 3 * value]
            for other in others:
                seen[name] += 1
                noticed[name] += is_faulty(changed(plan, path, other), ops, cpu)
    assert sum(seen.values()) >= 300
    assert set(seen) - set(+noticed) <= FREE


def numbers(value, path=(), name=""):
    """The whole numbers and truths of a plan: where each is, and its field."""
    if isinstance(value, Machine):
        return
    if is_dataclass(value):
        for field in fields(value):
            at = f"{type(value).__name__}.{field.name}"
            yield from numbers(getattr(value, field.name), (*path, field.name), at)
    elif isinstance(value, (tuple, list)):
        for n, inner in enumerate(value):
            yield from numbers(inner, (*path, n), name)
    elif isinstance(value, int):
        yield path, name, value


def changed(value, path, new):
    if not path:
        return new
    first, *rest = path
    if is_dataclass(value):
        return replace(value, **{first: changed(getattr(value, first), rest, new)})
    return type(value)(changed(v, rest, new) if n == first else v for n, v in enumerate(value))


def is_faulty(plan, ops, cpu):
    try:
        return bool(list(plan.faults(ops, cpu)))
    except ArithmeticError:  # divided by nothing
        return True
