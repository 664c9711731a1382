"""The arguments of an attention as functions of (batch ..., row, column), however they lie."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ....codegen.info.ops import Ops, OpView
from ....ops import mathfn
from ....tvm import te, tir
from ....tvm.types import PrimExpr, Tensor
from .forms import Shape

Read = Callable[..., PrimExpr]  # index -> element


def read(tensor: Tensor, *index: PrimExpr) -> PrimExpr:
    """An element of a tensor at an index of a shape that it broadcasts to."""
    last = index[len(index) - len(tensor.shape) :]
    return tensor(*(0 if int(e) == 1 else i for e, i in zip(tensor.shape, last, strict=True)))


def rows_of(tensor: Tensor, interleaved: bool, transposed: bool) -> Read:
    """An argument as [batch ..., row, column], however it lies."""
    if interleaved:
        return lambda b, h, row, column: read(tensor, b, row, h, column)
    if transposed:
        return lambda *i: read(tensor, *i[:-2], i[-1], i[-2])
    return lambda *i: read(tensor, *i)


def scaled_queries(
    queries: Read, scales: Mapping[str, Tensor | None], ops: Ops, transposed: bool
) -> Read:
    """The scales are applied to the queries, where there are fewest elements: `scale`, one of whose
    rows or columns lies as theirs do, and numbers: that of the keys, and the slope of the scores.
    """
    for name, scale in scales.items():
        if scale is not None:
            factor = rows_of(scale, False, transposed and name == "scale")
            queries = _by(reader(ops, name).kind, queries, factor)
    return queries


def _by(kind: str, left: Read, right: Read) -> Read:
    if kind == "divide":
        return lambda *i: tir.div(left(*i), right(*i))
    return lambda *i: left(*i) * right(*i)


def reader(ops: Ops, name: str) -> OpView:
    """The op that reads an argument."""
    return next(v for v in ops for i in range(len(v.inputs)) if ops.packing(v, i).arg == name)


def capped_scores(cap: Tensor | None, masked: Read) -> Read:
    """A score below a cap, and masked then; its slope is that of the queries."""
    if cap is None:
        return masked
    return lambda score, *i: masked(mathfn.tanh(score) * read(cap, *i), *i)


def laid_out(element: Read, shape: Shape) -> Tensor:
    """The result, from its element at (batch ..., query, column)."""
    batch, rest = shape.batch, (shape.queries, shape.columns)
    if "result" in shape.interleaved:
        extents = (batch[0], shape.queries, batch[1], shape.columns)
        return te.compute(extents, lambda b, m, h, e: element(b, h, m, e), name="result")
    return te.compute((*batch, *rest), element, name="result")
