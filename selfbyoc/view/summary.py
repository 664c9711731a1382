"""What a partitioning did to a model, as rows for a table or a page."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..partition.pattern import Either, Item, Many, Node, Op
from ..partition.report import MATCHED, Record, Report

if TYPE_CHECKING:
    from ..composite import Composite


@dataclass(frozen=True)
class Taken:
    """A composite that matched."""

    composite: str
    count: int
    ops: int
    why: str


@dataclass(frozen=True)
class Left:
    """Ops of one kind that no composite took, and the reason that most of them share."""

    kind: str
    count: int
    why: str


def taken(report: Report) -> list[Taken]:
    """The composites that matched, most ops first."""
    sizes = Counter(owner for _, _, owner in report.ops if owner)
    why = {r.composite: r.reason for r in report.matched}
    rows = [Taken(name, count, sizes[name], why[name]) for name, count in report.counts.items()]
    return sorted(rows, key=lambda row: -row.ops)


def left(report: Report, composites: Iterable[Composite]) -> list[Left]:
    """The op kinds that stayed with TVM, most frequent first."""
    known = {c.name: kinds(c) for c in composites}
    against: dict[str, list[Record]] = {}
    for record in report.records:
        if record.status != MATCHED:
            against.setdefault(record.root, []).append(record)
    rows = []
    for kind, count in report.left.items():
        roots = [name for name, k, owner in report.ops if k == kind and not owner]
        records = [r for name in roots for r in against.get(name, ())]
        rows.append(Left(kind, count, _reason(kind, records, known)))
    return sorted(rows, key=lambda row: -row.count)


def _reason(kind: str, records: list[Record], known: dict[str, set[str]]) -> str:
    names = [name for name, found in known.items() if kind in found]
    if not names:
        return "no composite has this op"
    if not records:
        return f"only inside {', '.join(names)}, which did not fit here"
    texts = Counter(f"{r.composite}: {_without_numbers(r.reason)}" for r in records)
    return texts.most_common(1)[0][0]


def _without_numbers(reason: str) -> str:
    """`conv2d_12` -> `conv2d`: the same reason at many places is one reason."""
    return re.sub(r"\b([a-z_]*[a-z]\w*?)_\d+\b", r"\1", reason)


def kinds(composite: Composite) -> set[str]:
    """The op kinds in a composite's pattern."""
    return {
        node.kind for root in composite.outputs for node in _nodes(root) if isinstance(node, Op)
    }


def _nodes(node: Node) -> Iterator[Node]:
    yield node
    if isinstance(node, Op):
        below: Iterable[Node] = node.inputs
    elif isinstance(node, Either):
        below = node.options
    elif isinstance(node, Item):
        below = (node.of,)
    elif isinstance(node, Many):
        below = (node.instance(0),)
    else:
        below = ()
    for child in below:
        yield from _nodes(child)
