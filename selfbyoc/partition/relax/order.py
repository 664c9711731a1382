"""Relax: bindings in an order in which those of a group are side by side.

    a = conv2d(x, w)             a = conv2d(x, w)
    b = matmul(y, v)      ->     c = relu(a)           for the group of a and c
    c = relu(a)                  b = matmul(y, v)

FuseOpsByPattern (0.27) sorts so too when it marks. Sorted before, calls come as the groups came,
and so one knows which call is of which match.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

from tvm import relax

from ...tvm.types import Binding, Expr


def by_group(bindings: Sequence[Binding], group_of: Mapping[Expr, Hashable]) -> list[Binding]:
    """The bindings of a block, each group (by variable) where its first one was, after all that the
    group reads.
    """
    owner = {b.var: group_of.get(b.var, b.var) for b in bindings}
    members: dict[Hashable, list[Any]] = {}
    for binding in bindings:
        members.setdefault(owner[binding.var], []).append(binding)
    seen: set[Hashable] = set()
    order: list[Any] = []
    for first in members:
        waiting = [] if first in seen else [(first, _read_by(members[first], owner))]
        seen.add(first)
        while waiting:  # no recursion: main may be deep
            group, read = waiting[-1]
            before = next((other for other in read if other not in seen), None)
            if before is None:
                order += members[group]
                waiting.pop()
            else:
                seen.add(before)
                waiting.append((before, _read_by(members[before], owner)))
    return order


def _read_by(bindings: Sequence[Binding], owner: Mapping[Expr, Hashable]) -> Iterator[Hashable]:
    """The groups whose values these bindings read."""
    variables = (v for b in bindings for v in relax.analysis.free_vars(b.value))
    return (owner[variable] for variable in variables if variable in owner)
