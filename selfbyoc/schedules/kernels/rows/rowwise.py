"""Operators over rows: norms and softmax over the last axis, their plan and their stages.

A row is reduced in two steps, into partial results in vectors and then into one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ....codegen.info.ops import Ops
from ....language.decisions import choose, is_symbolic
from ....machine import Machine
from ....ops import mathfn
from ....ops.softmax import Softmax
from ....tvm import te, tir
from ....tvm.nans import ANY_NAN
from ....tvm.types import PrimExpr, Tensor
from ...steps.blocks import divisor
from ...steps.candidates import divisors, next_to
from ...steps.faults import Faults, outside, undivided, unlike
from ...steps.parallel import LEAST_NORMALISED, is_worth_it
from ...steps.tensors import in_vectors, reduced_in_lanes

Read = Callable[..., PrimExpr]  # (row index ..., k) -> element
Stages = tuple[Read, tuple[Tensor, ...]]  # an element of the result, and the stages before it

LEAST_VECTORS = 6  # of a row, for a last one that is not full
MOST_AT_ONCE = 8  # rows: each is a stream to the hardware's prefetcher


@dataclass(frozen=True)
class RowwisePlan:
    """How rows are reduced: each into `partial` results in vectors of `lanes`, `at_once` rows side
    by side.
    """

    lanes: int
    partial: int
    at_once: int
    parallel: bool

    def __str__(self) -> str:
        return f"{self.at_once} rows at once, {self.partial} partial sums each"

    def faults(self, ops: Ops, cpu: Machine) -> Faults:
        """Of rows by themselves."""
        (call,) = ops
        *rows, count = call.outputs[0][0]
        yield from self.faults_of(rows, count, cpu)

    def faults_of(self, rows: Sequence[int], count: int, cpu: Machine) -> Faults:
        """Of rows [..., last] of `count` elements."""
        yield from unlike("a vector", self.lanes, cpu.lanes("float32"))
        yield from undivided("rows", rows[-1], self.at_once)
        if self.partial != self.lanes:  # of whole vectors the last one need not be full
            yield from undivided("elements of a row", count, self.partial)
        yield from outside("partial results", self.partial, 1, 2 * cpu.lanes("float32"))


def rowwise_plan(
    rows: Sequence[int], count: int, cpu: Machine, *, within: bool = False
) -> RowwisePlan:
    """The plan for rows [..., last] of `count` elements; `within` a task, they are not parallel.

    The sums of one row wait for each other, those of several do not: layer_norm of 128x768 takes
    8.0 us row by row and 5.2 by fours. Short rows mostly fold lanes: softmax of 1536x128 takes 25
    row by row and 28 by fours (Zen 5).
    """
    partial, lanes = partial_sums(count, cpu), cpu.lanes("float32")
    most = min(MOST_AT_ONCE, cpu.in_flight * lanes // (2 * partial))
    if not within:
        most = min(most, math.prod(rows) // cpu.cores)
    long = count >= 2 * cpu.in_flight * partial
    usual = divisor(rows[-1], max(1, most)) if long else 1
    at_once = choose("rows_at_once", next_to(divisors(rows[-1], MOST_AT_ONCE), usual), usual)
    parallel = not within and is_worth_it(math.prod(rows) * count, LEAST_NORMALISED)
    return RowwisePlan(lanes, partial, at_once, parallel)


def partial_sums(count: int, cpu: Machine) -> int:
    """Partial results of a row: a vector, with a last one that is not full where a row is long or
    of a symbolic length; or a divisor of the row that fills most of two.

    A last vector is put together element by element: softmax of 1536 x 197 takes 195 us by
    divisors and 124 so, x 100 128 and 90, but x 49 45 and 53 (AVX-512; AVX2: 210 and 171, 108 and
    81, 48 and 50; SSE loses some and wins others).
    """
    lanes = cpu.lanes("float32")
    is_long = lanes > 4 and count >= LEAST_VECTORS * lanes
    if count % lanes == 0 or is_long or is_symbolic(count):
        return lanes
    return divisor(count, 2 * lanes)


@dataclass(frozen=True)
class Rowwise:
    """Stages over rows: those `before` the result, each after all of its readers."""

    before: tuple[Tensor, ...]
    result: Tensor


def layer_norm(
    read: Read,
    gamma: Tensor,
    beta: Tensor,
    shape: tuple[int, ...],
    epsilon: float,
    plan: RowwisePlan,
) -> Stages:
    """-> the element at (row ..., k), and the stages before it. Two passes: a one-pass variance
    loses float32's digits.
    """
    *lead, count = shape
    rows = tuple(lead)
    total, total_lanes = reduced_in_lanes(read, rows, count, te.sum, "total", plan.partial)
    mean = te.compute(rows, lambda *i: total(*i) * tir.const(1 / count, "float32"), name="mean")

    def centred(*i: PrimExpr) -> PrimExpr:
        return read(*i) - mean(*i[:-1])

    before = (*_factor(centred, shape, epsilon, plan), mean, total, total_lanes)
    factor = before[0]
    return lambda *i: centred(*i) * factor(*i[:-1]) * gamma(i[-1]) + beta(i[-1]), before


def rms_norm(
    read: Read, gamma: Tensor, shape: tuple[int, ...], epsilon: float, plan: RowwisePlan
) -> Stages:
    """-> the element at (row ..., k), and the stages before it."""
    before = _factor(read, shape, epsilon, plan)
    factor = before[0]
    return lambda *i: read(*i) * factor(*i[:-1]) * gamma(i[-1]), before


def _factor(
    read: Read, shape: tuple[int, ...], epsilon: float, plan: RowwisePlan
) -> tuple[Tensor, ...]:
    """1 / sqrt(mean of the squared elements + epsilon) of each row, and the stages before it."""
    *lead, count = shape
    rows = tuple(lead)

    def f(value: float) -> PrimExpr:
        return tir.const(value, "float32")

    def squared(*i: PrimExpr) -> PrimExpr:
        element = read(*i)
        return element * element

    spread, spread_lanes = reduced_in_lanes(squared, rows, count, te.sum, "spread", plan.partial)
    factor = te.compute(
        rows, lambda *i: f(1.0) / te.sqrt(spread(*i) * f(1 / count) + f(epsilon)), name="factor"
    )
    return factor, spread, spread_lanes


def softmax(
    read: Read, shape: tuple[int, ...], plan: RowwisePlan, guarded: bool | str = False
) -> Stages:
    """-> the element at (row ..., k) of the softmax of each row, and the stages before it."""
    *lead, count = shape
    rows = tuple(lead)
    parts = Softmax(guarded)
    peak, peak_lanes = reduced_in_lanes(read, rows, count, te.max, "peak", plan.partial, ANY_NAN)

    def raised(*i: PrimExpr) -> PrimExpr:
        return mathfn.exp_of_difference(read(*i) - parts.subtracted(peak(*i[:-1])))

    whole = -(-count // plan.partial) * plan.partial
    nothing = tir.const(0, "float32")
    power = te.compute(
        (*rows, whole), in_vectors(raised, count, plan.partial, nothing), name="power"
    )
    total, total_lanes = reduced_in_lanes(power, rows, whole, te.sum, "total", plan.partial)
    inverse = te.compute(rows, lambda *i: parts.inverse(total(*i)), name="inverse")
    before = (inverse, total, total_lanes, power, peak, peak_lanes)
    return lambda *i: parts.multiplied(power(*i), inverse(*i[:-1])), before
