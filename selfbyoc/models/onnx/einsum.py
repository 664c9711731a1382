"""Einsum of two operands as the product of matrices that it is: the frontends make one sum of it,
by the definition, which no composite has.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .build import Folding
from .graph import Graph, attributes

if TYPE_CHECKING:
    import onnx

Labels = tuple[str, ...]
_ELLIPSIS = "..."


@dataclass(frozen=True)
class Equation:
    """The labels of two operands and of the result, and how many elements each has, if known."""

    left: Labels
    right: Labels
    result: Labels
    sizes: dict[str, int | None]

    @property
    def both(self) -> Labels:
        """Those of a batch of products."""
        return tuple(n for n in self.result if n in self.left and n in self.right)

    @property
    def rows(self) -> Labels:
        """Those that only the left operand has."""
        return tuple(n for n in self.result if n not in self.right)

    @property
    def columns(self) -> Labels:
        """Those that only the right operand has."""
        return tuple(n for n in self.result if n not in self.left)

    @property
    def summed(self) -> Labels:
        """Those that a product adds up along."""
        return tuple(n for n in self.left if n in self.right and n not in self.result)

    @property
    def swapped(self) -> Equation:
        """Of the operands the other way round."""
        return Equation(self.right, self.left, self.result, self.sizes)

    def extents(self, *groups: Labels) -> list[int]:
        """How many elements each of these has, as one axis; -1 where that is open."""
        sizes = [[self.sizes[n] for n in group] for group in groups]
        return [math.prod(s for s in each if s) if None not in each else -1 for each in sizes]


def _einsum(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    equation = _equation(node, graph)
    if equation is None:
        return None
    steps, (x, y) = Folding(graph, node), node.input
    is_weight = [graph.constant(name) is not None for name in (x, y)]
    ends_in_row = equation.result[-1:] == equation.rows[-1:] and not is_weight[1]
    if ends_in_row or (is_weight[0] and not equation.both):
        equation, x, y = equation.swapped, y, x
    x, left = _added_up(steps, x, equation.left, {*equation.right, *equation.result})
    y, right = _added_up(steps, y, equation.right, {*equation.left, *equation.result})
    write = _product if equation.summed else _outer
    found = write(steps, Equation(left, right, equation.result, equation.sizes), x, y)
    return None if found is None else steps.instead(found)


def _equation(node: onnx.NodeProto, graph: Graph) -> Equation | None:
    """None of what is no product of two tensors of floats; where a label stands twice in one of
    them, or for extents that are not known to be the same.
    """
    text, arrow, result = attributes(node)["equation"].decode().replace(" ", "").partition("->")
    terms, dims = text.split(","), [graph.dims(name) for name in node.input]
    dtype = graph.dtype(node.input[0])
    if len(terms) != 2 or len(dims) != 2 or dtype is None or dtype.kind != "f":
        return None
    operands, sizes = list[Labels](), dict[str, int | None]()
    for term, extents in zip(terms, dims, strict=True):
        labels = () if extents is None else _labels(term, len(extents))
        if extents is None or not _agree(sizes, labels, extents):
            return None
        operands.append(labels)
    free = sum(name.startswith(_ELLIPSIS) for name in sizes)
    if not arrow:
        once = sorted(c for c in set(text) - set(".,") if text.count(c) == 1)
        result = _ELLIPSIS * (_ELLIPSIS in text) + "".join(once)
    left, right = operands
    return Equation(left, right, _labels(result, len(result.replace(_ELLIPSIS, "")) + free), sizes)


def _labels(term: str, rank: int) -> Labels:
    """One for each axis: those of an ellipsis are numbered, from the last on."""
    before, dots, after = term.partition(_ELLIPSIS)
    free = range(rank - len(before) - len(after), 0, -1) if dots else ()
    return (*before, *(f"{_ELLIPSIS}{n}" for n in free), *after)


def _agree(sizes: dict[str, int | None], labels: Labels, extents: Sequence[int | None]) -> bool:
    """Whether labels differ and have these extents in all operands so far, none of them 0."""
    if len(set(labels)) != len(labels) or len(labels) != len(extents):
        return False
    pairs = zip(labels, extents, strict=True)
    return all(extent != 0 and sizes.setdefault(n, extent) == extent for n, extent in pairs)


def _added_up(steps: Folding, x: str, labels: Labels, needed: set[str]) -> tuple[str, Labels]:
    """An operand without the axes that only it has, and not the result."""
    alone = [n for n, label in enumerate(labels) if label not in needed]
    if alone:
        x = steps.over("ReduceSum", x, alone, keepdims=0)
    return x, tuple(label for label in labels if label in needed)


def _outer(steps: Folding, equation: Equation, x: str, y: str) -> str:
    """Of operands that share no sum: each broadcast to the result."""
    result, found = equation.result, list[str]()
    for name, labels in ((x, equation.left), (y, equation.right)):
        moved = _moved(steps, name, labels, tuple(n for n in result if n in labels))
        missing = [n for n, label in enumerate(result) if label not in labels]
        found.append(steps.over("Unsqueeze", moved, missing) if missing else moved)
    return steps("Mul", *found)


def _product(steps: Folding, equation: Equation, x: str, y: str) -> str | None:
    """Matrices of one axis each way, and their product; None where a reshape has two open sizes."""
    both, rows, columns, summed = equation.both, equation.rows, equation.columns, equation.summed
    # Beside a matrix of no batch, rows of several axes are rows as they are.
    kept, merged = (both, [rows]) if both or not rows else (rows, [])
    x = _moved(steps, x, equation.left, (*both, *rows, *summed))
    y = _moved(steps, y, equation.right, (*both, *summed, *columns))
    left = _grouped(steps, equation, x, kept, [*merged, summed])
    right = _grouped(steps, equation, y, both, [summed, columns])
    if left is None or right is None:
        return None
    found = steps("MatMul", left, right)
    if any(len(group) != 1 for group in (*merged, columns)):
        sizes = equation.extents(*((n,) for group in (*merged, columns) for n in group))
        if sizes.count(-1) > 1:
            return None
        found = steps.reshape(found, (*[0] * len(kept), *sizes))
    return _moved(steps, found, (*both, *rows, *columns), equation.result)


def _grouped(
    steps: Folding, equation: Equation, x: str, kept: Labels, groups: Sequence[Labels]
) -> str | None:
    """An operand with each group of its last axes as one; None where two of them are open."""
    if all(len(group) == 1 for group in groups):
        return x
    shape = equation.extents(*groups)
    return steps.reshape(x, (*[0] * len(kept), *shape)) if shape.count(-1) < 2 else None


def _moved(steps: Folding, x: str, labels: Labels, order: Labels) -> str:
    """An operand with its axes in another order."""
    places = tuple(labels.index(label) for label in order)
    return x if places == tuple(range(len(places))) else steps.transpose(x, places)


FORMS = {"Einsum": _einsum}
