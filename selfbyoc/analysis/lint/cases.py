"""What is wrong with a composite on its own cases: matching, checks, computes, reference.

Nothing is scheduled or lowered: a case is partitioned, and its ops are stacked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from ...codegen.pack import packable, packed_types
from ...codegen.stack import stack
from ...errors import CompositeError, SelfbyocError, one_line
from ...graph import Value
from ...ir.emit import emit
from ...language.case import Case
from ...language.composite import Composite
from ...partition import partitioning
from ...partition.report import MISSED, REFUSED, Report
from ...runtime.numpy_ops import all_values, wide
from ...runtime.tolerance import difference, longest_reduction
from ...tvm import GENERATION
from ..kernels import Kernel, kernels
from ..verify.inputs import Array, arrays
from ..verify.reference import own_reference
from .coverage import Seen, cover, uncovered
from .records import Finding, place


def on_cases(composite: Composite) -> Iterator[Finding]:
    """Every finding of every case that exists on this generation."""
    seen = Seen()
    for case in composite.cases:
        if GENERATION not in case.generations:
            continue
        for kind, message in _on_case(composite, case, seen):
            where = place(case.program or composite.pattern)
            yield Finding(kind, f"case {case.name}: {message}", composite.name, *where)
    if seen.matched:
        for kind, message in uncovered(composite, seen):
            yield Finding(kind, message, composite.name, *place(composite.pattern))


def _on_case(composite: Composite, case: Case, seen: Seen) -> Iterator[tuple[str, str]]:
    try:
        constants = {n: _constant(*case.args[n]) for n in case.constants}
        mod = emit(case.program or composite.pattern, case.args, constants)
    except Exception as err:  # TVM's type inference raises plain errors of many kinds
        yield "bad-case", f"it is no program: {one_line(err)}"
        return
    try:
        decided = partitioning(mod, None, None, [composite])
    except CompositeError as err:
        yield "check-raises", one_line(err)
        return
    except Exception as err:  # Relay infers types only now
        yield "bad-case", f"it is no program: {one_line(err)}"
        return
    if not decided.report.matched:
        yield not_matched(decided.report)
        return
    if decided.report.left:
        left = ", ".join(sorted(decided.report.left))
        yield "case-partly-matched", f"ops of it are left outside the composite: {left}"
    seen.matched = True
    for kernel in kernels(decided.finish(pack=False)):
        cover(composite, kernel, seen)
        yield from _stacked(kernel)
        yield from _reference(kernel, seen)


def _constant(shape: tuple[int, ...], dtype: str) -> Array:
    """Positive, so that variances and scales are useful."""
    rng = np.random.default_rng(0)
    if dtype.startswith(("int", "uint")):
        return rng.integers(1, 8, shape).astype(dtype)
    return (np.abs(rng.standard_normal(shape)) + 0.1).astype(dtype)


def not_matched(report: Report) -> tuple[str, str]:
    """The reason of the last candidate: it is the nearest to the whole program."""
    refused = [r for r in report.records if r.status == REFUSED]
    if refused:
        return "case-refused", f"{refused[-1].root} is refused: {refused[-1].reason}"
    missed = [r for r in report.records if r.status == MISSED]
    reason = missed[-1].reason if missed else "it has no op that the pattern could end in"
    return "case-not-matched", f"its own pattern does not match it: {reason}"


def _stacked(kernel: Kernel) -> Iterator[tuple[str, str]]:
    """Computes against type inference, with the weights packed and not."""
    graph, match = kernel.source.graph, kernel.match
    constant = set(kernel.calls[0]) if kernel.calls else set()
    try:
        wanted = {i: name for i, name in packable(graph, match).items() if i in constant}
        packed = packed_types(graph, match, wanted)
    except SelfbyocError as err:
        yield "pack", one_line(err)
        return
    for label, given in {"": {}, " (weights packed)": packed}.items():
        try:
            stack(graph, match, given)
        except SelfbyocError as err:
            yield "compute", one_line(err) + (label if given else "")
            return


def _reference(kernel: Kernel, seen: Seen) -> Iterator[tuple[str, str]]:
    """The composite's reference against NumPy's meaning of the ops."""
    graph = kernel.source.graph
    if kernel.composite.reference is None:
        return
    constants = kernel.calls[0] if kernel.calls else {}
    made = arrays(graph, constants, "random")
    lacks = ""
    try:
        with np.errstate(all="ignore"):
            values: Mapping[Value, Array] = all_values(graph, made)
    except SelfbyocError as err:  # ops without a NumPy meaning: it is called, and not compared
        lacks, values = one_line(err), dict(zip(graph.inputs, map(wide, made), strict=True))
    try:
        found = own_reference(kernel.match, graph, values)
    except Exception as err:  # whatever a user's function raises is the reference's error
        seen.reference = True
        yield "reference-raises", f"reference raised {one_line(err)}"
        return
    if isinstance(found, str) or lacks:
        seen.unread = seen.unread or lacks or str(found)
        return
    seen.reference = True
    yield from _compared(kernel, values, found)


def _compared(
    kernel: Kernel, values: Mapping[Value, Array], found: list[Array]
) -> Iterator[tuple[str, str]]:
    outputs = kernel.match.own.outputs
    if len(found) != len(outputs):
        yield "reference-differs", f"reference gives {len(found)} outputs, expected {len(outputs)}"
        return
    reduction = longest_reduction(kernel.source.graph)
    for ours, value in zip(found, outputs, strict=True):
        theirs = values[value]
        if ours.shape != theirs.shape:
            text = f"reference gives the shape {ours.shape}, expected {theirs.shape}"
            yield "reference-differs", text
        elif (wrong := difference(ours, theirs, value.dtype, reduction)) is not None:
            yield "reference-differs", f"reference differs from NumPy's meaning of the ops: {wrong}"
