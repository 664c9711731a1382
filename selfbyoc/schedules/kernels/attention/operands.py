"""The arguments of an attention as functions of (batch ..., row, column), however they lie."""

from __future__ import annotations

from collections.abc import Callable

from ....codegen.info.ops import Ops
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
    queries: Read, scale: Tensor | None, key_scale: Tensor | None, ops: Ops, transposed: bool
) -> Read:
    """The scales are applied to the queries, where there are fewest elements: the number that the
    keys are multiplied by, and the scale, one of whose rows or columns lies as theirs do.
    """
    kinds = [view.kind for view in ops if view.kind in ("multiply", "divide")]
    if key_scale is not None:
        kinds.remove("multiply")
        queries = _product(queries, rows_of(key_scale, False, False))
    if scale is None or not kinds:
        return queries
    factor = rows_of(scale, False, transposed)
    if kinds[0] == "multiply":
        return _product(queries, factor)
    return lambda *i: tir.div(queries(*i), factor(*i))


def _product(left: Read, right: Read) -> Read:
    return lambda *i: left(*i) * right(*i)


def masked_scores(mask: Tensor | None, second: Tensor | None, ops: Ops) -> Read:
    """A score with the mask; one along a single axis was read as a bias. And with a second one."""
    if second is not None:
        first = masked_scores(mask, None, ops)
        return lambda score, *i: first(score, *i) + read(second, *i)
    if mask is None:
        return lambda score, *i: score
    if ops.of("bias_add"):
        axis = ops.bias_add.attrs["axis"]
        return lambda score, *i: score + mask(i[axis])
    return lambda score, *i: score + read(mask, *i)


def laid_out(element: Read, shape: Shape) -> Tensor:
    """The result, from its element at (batch ..., query, column)."""
    batch, rest = shape.batch, (shape.queries, shape.columns)
    if "result" in shape.interleaved:
        extents = (batch[0], shape.queries, batch[1], shape.columns)
        return te.compute(extents, lambda b, m, h, e: element(b, h, m, e), name="result")
    return te.compute((*batch, *rest), element, name="result")
