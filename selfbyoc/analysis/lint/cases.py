"""What is wrong with a composite on its own cases: matching, checks, computes, reference.

Nothing is scheduled or lowered: a case is partitioned, and its ops are stacked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..._tvm import GENERATION
from ...codegen.pack import packable, packed_types
from ...codegen.stack import stack
from ...errors import CompositeError, SelfbyocError, one_line
from ...ir.emit import emit
from ...ir.generation import writer
from ...language.case import Case
from ...language.composite import Composite
from ...language.pattern import Arg, Either, Item, Many, Node, Op, below
from ...match.match import Bound, Matcher
from ...partition import partitioning
from ...partition.report import MISSED, REFUSED, Report
from ...runtime.numpy_ops import all_values
from ...runtime.tolerance import difference, longest_reduction
from ..kernels import Kernel, kernels
from ..verify.inputs import Array, arrays
from ..verify.reference import own_reference
from .declaration import nodes
from .records import Finding, place


@dataclass
class _Seen:
    """What the cases of one composite exercised."""

    options: set[tuple[int, int]] = field(default_factory=set)  # (id of an either, option)
    many: set[int] = field(default_factory=set)
    matched: bool = False
    reference: bool = False


def on_cases(composite: Composite) -> Iterator[Finding]:
    """Every finding of every case that exists on this generation."""
    seen = _Seen()
    for case in composite.cases:
        if GENERATION not in case.generations:
            continue
        for kind, message in _on_case(composite, case, seen):
            where = place(case.program or composite.pattern)
            yield Finding(kind, f"case {case.name}: {message}", composite.name, *where)
    if seen.matched:
        for kind, message in _uncovered(composite, seen):
            yield Finding(kind, message, composite.name, *place(composite.pattern))


def _on_case(composite: Composite, case: Case, seen: _Seen) -> Iterator[tuple[str, str]]:
    try:
        constants = {n: _constant(*case.args[n]) for n in case.constants if n in case.args}
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
        yield _not_matched(decided.report)
        return
    if decided.report.left:
        left = ", ".join(sorted(decided.report.left))
        yield "case-partly-matched", f"ops of it are left outside the composite: {left}"
    seen.matched = True
    for kernel in kernels(decided.finish(pack=False)):
        _cover(composite, kernel, seen)
        yield from _stacked(kernel)
        yield from _reference(kernel, seen)


def _constant(shape: tuple[int, ...], dtype: str) -> Array:
    """Positive, so that variances and scales are useful."""
    rng = np.random.default_rng(0)
    if dtype.startswith(("int", "uint")):
        return rng.integers(1, 8, shape).astype(dtype)
    return (np.abs(rng.standard_normal(shape)) + 0.1).astype(dtype)


def _not_matched(report: Report) -> tuple[str, str]:
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


def _reference(kernel: Kernel, seen: _Seen) -> Iterator[tuple[str, str]]:
    """The composite's reference against NumPy's meaning of the ops."""
    graph = kernel.source.graph
    if kernel.composite.reference is None:
        return
    constants = kernel.calls[0] if kernel.calls else {}
    try:
        values = all_values(graph, arrays(graph, constants, "random"))
    except SelfbyocError:  # ops without a NumPy meaning: nothing to compare with
        seen.reference = True
        return
    try:
        found = own_reference(kernel.match, graph, values)
    except Exception as err:  # whatever a user's function raises is the reference's error
        seen.reference = True
        yield "reference-raises", f"reference raised {one_line(err)}"
        return
    if found is None:
        return
    seen.reference = True
    yield from _compared(kernel, values, found)


def _compared(
    kernel: Kernel, values: Mapping[int, Array], found: list[Array]
) -> Iterator[tuple[str, str]]:
    outputs = kernel.source.graph.outputs
    if len(found) != len(outputs):
        yield "reference-differs", f"reference gives {len(found)} outputs, expected {len(outputs)}"
        return
    reduction = longest_reduction(kernel.source.graph)
    for ours, value in zip(found, outputs, strict=True):
        theirs = values[id(value)]
        if ours.shape != theirs.shape:
            text = f"reference gives the shape {ours.shape}, expected {theirs.shape}"
            yield "reference-differs", text
        elif (wrong := difference(ours, theirs, value.dtype, reduction)) is not None:
            yield "reference-differs", f"reference differs from NumPy's meaning of the ops: {wrong}"


def _cover(composite: Composite, kernel: Kernel, seen: _Seen) -> None:
    """Note which options of the pattern the match took."""
    graph, root = kernel.source.graph, kernel.match.root
    matcher = Matcher(graph)
    for value in root.outputs:
        bound = next(iter(matcher.match(composite.root, value, Bound())), None)
        if bound is not None:
            _walk(composite.root, bound, seen)
            return


def _walk(node: Node, bound: Bound, seen: _Seen) -> None:
    if isinstance(node, Many):
        seen.many.add(id(node))
        return
    if not isinstance(node, Either):
        for child in below(node):
            _walk(child, bound, seen)
        return
    taken = next((i for i, o in enumerate(node.options) if _took_part(o, bound)), None)
    if taken is not None:
        seen.options.add((id(node), taken))
        _walk(node.options[taken], bound, seen)


def _took_part(node: Node, bound: Bound) -> bool:
    """Whether a node is part of the match; of the options of a choice the first that is was
    taken.
    """
    if isinstance(node, Arg):
        return node.name in bound.args
    if isinstance(node, Either):
        return any(_took_part(option, bound) for option in node.options)
    if isinstance(node, (Op, Item)):
        return id(node.of if isinstance(node, Item) else node) in bound.parts
    return True


def _uncovered(composite: Composite, seen: _Seen) -> Iterator[tuple[str, str]]:
    for node in nodes(composite.outputs):
        if isinstance(node, Many) and id(node) not in seen.many:
            yield "uncovered-many", "no case has the branches of a `many`"
        if not isinstance(node, Either) or _inside_many(node, composite):
            continue
        for i, option in enumerate(node.options):
            if (id(node), i) not in seen.options and _exists_here(option):
                yield "uncovered-option", f"no case takes the option {_short(option)} of an either"
    if composite.reference is not None and not seen.reference:
        text = "no case is the pattern as it stands, so that nothing checks the reference"
        yield "reference-unchecked", text


def _exists_here(option: Node) -> bool:
    """Whether a case on this generation could take an option: it can write all of its ops."""
    return all(writer.function_of(n.kind) for n in nodes([option]) if isinstance(n, Op))


def _inside_many(node: Node, composite: Composite) -> bool:
    """A branch is traced anew for each input: its options cannot be told apart here."""
    outside: set[int] = set()
    stack: list[Any] = list(composite.outputs)
    while stack:
        found = stack.pop()
        if id(found) not in outside:
            outside.add(id(found))
            stack.extend(() if isinstance(found, Many) else below(found))
    return id(node) not in outside


def _short(node: Node, depth: int = 2) -> str:
    """`relu(conv2d(...))`: the outer two ops are enough to find it."""
    if isinstance(node, Either):
        return f"{_short(node.options[0], depth)} | ..."
    if isinstance(node, Item):
        return f"{_short(node.of, depth)}[{node.index}]"
    if not isinstance(node, Op):
        return repr(node)
    if depth == 0:
        return f"{node.kind}(...)"
    return f"{node.kind}({', '.join(_short(child, depth - 1) for child in node.inputs)})"
