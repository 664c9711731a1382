"""The checks of one kernel, as a stream of events: what is about to run, and what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...codegen.apply import level_of
from ...codegen.external import NOT_OWN
from ...codegen.symbolic.maker import border_sizes
from ...codegen.tuning_record import Tuned
from ...errors import SelfbyocError, one_line
from ...graph import OpGraph, Value, sizes_text
from ...runtime.numpy_ops import wide
from ...runtime.tolerance import Difference, difference, longest_reduction
from ...tvm import GENERATION
from ...tvm.types import Target
from ..guards import Overrun
from .generation import default_road
from .inputs import Array, kinds_for
from .records import PASSED, RAISED, RAN, REFERENCE, REFUSED, SKIPPED, WRONG, Check, Verdict
from .reference import NUMPY, OWN_REFERENCE, TVM, Question, own_reference, question
from .rounding import Rounding, no_worse, rounding
from .run import Runner, cannot_run
from .steady import unsteady
from .subjects import Subject

BUILD = "build"
_THEIRS = "the composite's reference"
# Seconds for one build, or one run with its references. The slowest of GoogLeNet take 5 s here.
TIMEOUT = 300.0


@dataclass(frozen=True)
class Plan:
    """How kernels are verified."""

    target: Target
    kinds: Sequence[str] | None = None  # None: all that say something
    seed: int = 0
    timeout: float = TIMEOUT


@dataclass(frozen=True)
class Event:
    """`stage` is about to run (what a crash is then blamed on), or gave this check."""

    stage: str
    check: Check | None = None


def level(subject: Subject, target: Target) -> str:
    """The level of the kernel as it is going to be built."""
    attrs = subject.kernel.source.attrs
    told, tuned = attrs.get(NOT_OWN, ""), Tuned.of(attrs)
    return level_of(subject.kernel.composite, target, told, tuned).name


def verdict(subject: Subject, plan: Plan, checks: Sequence[Check]) -> Verdict:
    """The checks of a kernel under its name."""
    kernel = subject.kernel
    return Verdict(
        kernel.composite.name,
        subject.roots,
        kernel.symbol,
        level(subject, plan.target),
        subject.type,
        tuple(checks),
    )


def checks(subject: Subject, plan: Plan) -> Iterator[Event]:
    """Build the kernel and run it on every kind of input."""
    reason = cannot_run(plan.target)
    if reason:
        yield Event(BUILD, Check(BUILD, REFUSED, reason))
        return
    yield Event(BUILD)
    try:
        runner = Runner(subject.kernel.source, plan.target)
    except SelfbyocError as err:
        yield Event(BUILD, Check(BUILD, RAISED, one_line(err)))
        return
    comparison = Comparison(subject, runner, plan)
    # 0.17's graph executor runs nothing of a symbol.
    comparison.asked_tvm = GENERATION == "relay" and bool(subject.kernel.source.symbols)
    known = kinds_for(subject.graph, subject.constants)
    asked = [kind for kind in known if plan.kinds is None or kind in plan.kinds]
    if not asked:
        yield Event(BUILD, Check("inputs", SKIPPED, f"only {', '.join(known)} say something of it"))
    for kind in known:
        if kind in (*asked, "nan"):  # it leaves NaN in scratch memory for the others
            yield Event(kind)
            yield Event(kind, comparison.check(kind))
    for sizes in border_sizes(subject.kernel.source):
        stage = sizes_text(sizes)
        yield Event(stage)
        sized = subject.at(sizes)
        other = Comparison(sized, runner.at(sized.graph), plan)
        other.asked_tvm = True  # it builds nothing of a symbol
        yield Event(stage, replace(other.check("random"), kind=stage))
    if comparison.uncompared:
        text = f"{_THEIRS} is not compared: {comparison.uncompared}"
        yield Event(REFERENCE, Check(REFERENCE, SKIPPED, text))


class Comparison:
    """Compares one kernel's results with everything that is known of them."""

    def __init__(self, subject: Subject, runner: Runner, plan: Plan) -> None:
        self.subject, self.runner, self.plan = subject, runner, plan
        self.graph = subject.graph
        self.reduction = longest_reduction(subject.graph)
        self._tvm: Any = None
        self.asked_tvm = False
        self.uncompared = ""  # why the composite's own reference says nothing of this kernel

    def check(self, kind: str) -> Check:
        """Run the kernel on a kind of input."""
        asked = question(self.graph, self.subject.constants, kind, self.plan.seed)
        if asked.why_not:
            return Check(kind, SKIPPED, asked.why_not)
        try:
            found = self.runner(self.subject.passed(list(asked.inputs)))
        except Overrun as err:
            return Check(kind, WRONG, str(err), against="its own memory")
        except Exception as err:  # a kernel's own checks of its arguments raise plain errors
            return Check(kind, RAISED, one_line(err))
        if kind == "nan":
            return Check(kind, RAN)
        check = self._compared(asked, found)
        if kind == "random" and check.status != WRONG:
            text = unsteady(self.runner, self.subject.passed(list(asked.inputs)), found)
            return Check(kind, WRONG, text, against="itself") if text else check
        return check

    def _compared(self, asked: Question, found: list[Array]) -> Check:
        if asked.values is None:
            check = self._with_tvm_alone(asked, found)
            return check if check.status == WRONG else self._with_own(asked, found, check)
        expected = [asked.values[v] for v in self.graph.outputs]
        check = self._against(asked, found, expected, NUMPY)
        if check.status == PASSED:
            check = self._with_own(asked, found, check)
        if check.status != WRONG and self.asked_tvm:
            return check
        second = self._second_opinion(asked, found, expected, check)
        is_forgiven = check.status == WRONG and second.status == PASSED
        return self._with_own(asked, found, second) if is_forgiven else second

    def _with_own(self, asked: Question, found: list[Array], before: Check) -> Check:
        """Nothing is wrong so far; what does the composite's own reference say?"""
        match, values = self.subject.kernel.match, asked.values
        if values is None:
            values = dict(zip(self.graph.inputs, map(wide, asked.inputs), strict=True))
        try:
            own = own_reference(match, self.graph, values)
        except Exception as err:  # whatever a user's function raises is the reference's error
            return Check(asked.kind, WRONG, f"{_THEIRS} raised {one_line(err)}", OWN_REFERENCE)
        if isinstance(own, str):
            self.uncompared = own
            return before
        outputs = match.own.outputs
        if match.own is not match:  # the kernel goes on after them
            found = [values[v] for v in outputs]
        types = [(a.shape, b.shape) for a, b in zip(own, found, strict=False) if a.shape != b.shape]
        if len(own) != len(found) or types:
            shapes = [[a.shape for a in arrays] for arrays in (own, found)]
            text = f"{_THEIRS} gives {shapes[0]}, the kernel {shapes[1]}"
            return Check(asked.kind, WRONG, text, against=OWN_REFERENCE)
        after = self._against(asked, found, own, OWN_REFERENCE, outputs)
        is_all = before.status == SKIPPED and asked.values is None
        return after if after.status == WRONG or is_all else before

    def _against(
        self,
        asked: Question,
        found: list[Array],
        expected: Sequence[Array],
        name: str,
        outputs: Sequence[Value] = (),
    ) -> Check:
        """The first output that differs where rounding does not decide."""
        graph = replace(self.graph, outputs=tuple(outputs)) if outputs else self.graph
        first = self._difference(graph, found, expected, [])
        if first is None:
            return Check(asked.kind, PASSED)
        if asked.values is None:
            return Check(asked.kind, WRONG, "", name, *first)
        numpy = [asked.values[v] for v in graph.outputs]
        known = rounding(graph, asked, numpy, self.plan.seed)
        if any(each.decides for each in known):
            return Check(asked.kind, SKIPPED, "rounding decides what the result is")
        first = self._difference(graph, found, expected, known)
        if first is None:
            return Check(asked.kind, PASSED, _allowed(known))
        return Check(asked.kind, WRONG, "", name, *first)

    def _difference(
        self,
        graph: OpGraph,
        found: list[Array],
        expected: Sequence[Array],
        known: Sequence[Rounding],
    ) -> tuple[int, Difference] | None:
        """The first output that differs, and where."""
        for n, (value, ours, theirs) in enumerate(zip(graph.outputs, found, expected, strict=True)):
            slack = known[n].slack if known else 0.0
            if known and known[n].left_out.any():
                ours = np.where(known[n].left_out, theirs.astype(ours.dtype), ours)
            wrong = difference(ours, theirs, value.dtype, self.reduction, slack)
            if wrong is not None:
                return n, wrong
        return None

    def _second_opinion(
        self, asked: Question, found: list[Array], expected: list[Array], check: Check
    ) -> Check:
        """TVM's own build on the first kind of input, and wherever the kernel was found wrong."""
        theirs = self._unfused(asked)
        if isinstance(theirs, str):
            return check if check.detail else _with(check, theirs)
        agrees = self._difference(self.graph, theirs, expected, []) is None
        if check.status == WRONG and check.against == NUMPY and no_worse(found, theirs, expected):
            return Check(asked.kind, PASSED, f"{TVM} is as far off: an op rounds within itself")
        if check.status == WRONG:
            side = "agrees with NumPy" if agrees else "disagrees with NumPy too"
            return _with(check, f"{TVM} {side}")
        return check if agrees or check.detail else _with(check, f"{TVM} disagrees with NumPy")

    def _with_tvm_alone(self, asked: Question, found: list[Array]) -> Check:
        """Ops without a NumPy meaning here."""
        theirs = self._unfused(asked)
        if isinstance(theirs, str):
            return Check(asked.kind, SKIPPED, f"no NumPy meaning of its ops, and {theirs}")
        return self._against(asked, found, theirs, TVM)

    def _unfused(self, asked: Question) -> list[Array] | str:
        """The outputs of TVM's own build, or why there are none."""
        self.asked_tvm = True
        try:
            if self._tvm is None:
                self._tvm = default_road.unfused(
                    self.subject.function, asked.inputs, self.subject.constants
                )
            return self._tvm(asked.inputs)
        except Exception as err:  # TVM raises plain errors of many kinds for what it cannot build
            return f"TVM cannot build it alone: {one_line(err)}"


def _allowed(known: Sequence[Rounding]) -> str:
    """What rounding explains, in words."""
    left_out, slack = sum(int(k.left_out.sum()) for k in known), max(k.slack for k in known)
    if left_out:
        return f"{left_out} elements left out: rounding decides them"
    return f"the bound is {slack:.1e} wider: values on the way are rounded"


def _with(check: Check, detail: str) -> Check:
    """The check with one more remark."""
    return replace(check, detail="; ".join(filter(None, [check.detail, detail])))
