"""A transpose of a transpose is one, or none where the second undoes the first.

    transpose(transpose(x, (0, 2, 1, 3)), (0, 2, 1, 3))  ->  x

Exporters write them wherever two modules disagree; a cache's new rows have one of the model and one
of the cache. TVM joins both into one kernel, which is a copy.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.rewriting import Editor, Made
from ..tvm.types import Expr


def joined_transposes(made: Made, to: Editor) -> Expr | None:
    """A transpose of a value that is one itself."""
    inner = to.made(made.args[0]) if made.kind == "transpose" else None
    if inner is None or inner.kind != "transpose":
        return None
    first, second = _axes(inner, to), _axes(made, to)
    if first is None or second is None:
        return None
    axes = tuple(first[axis] for axis in second)
    if axes == tuple(range(len(axes))):
        return inner.args[0]
    return to.emit("transpose", inner.args[0], axes=axes)


def _axes(made: Made, to: Editor) -> list[int] | None:
    """Where each axis comes from; None of an unknown number of axes. Reversed unless it says so."""
    shape, given = to.shape(made.call), made.attrs.get("axes")
    if shape is None:
        return None
    if given is None:
        return list(range(len(shape)))[::-1]
    assert isinstance(given, Sequence)
    return [int(axis) % len(shape) for axis in given]
