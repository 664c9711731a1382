"""A factor for each head stands before the product of queries and keys, not behind it.

    (q @ k.T) * c  ->  (q * c) @ k.T    for c of one number a head

Attention of cosines (Swin v2) learns such factors. Behind the product they are as many products as
there are scores; before it they are those of the queries, which an attention kernel reads scaled.
"""

from __future__ import annotations

import numpy as np

from ..ir.rewriting import Editor, Made, dtype, is_known
from ..tvm.types import Expr, PrimExpr

PRODUCTS = ("matmul", "batch_matmul")


def factors_of_queries(made: Made, to: Editor) -> Expr | None:
    """A product's constant factors, the same in each of its rows and columns, at its first side."""
    if made.kind != "multiply":
        return None
    for scores, given in (made.args, made.args[::-1]):
        factor, shape = to.array(given), to.shape(scores)
        if factor is None or factor.size == 1 or not is_known(shape) or len(shape) < 3:
            continue
        whole = factor.reshape(*[1] * (len(shape) - factor.ndim), *factor.shape)
        if whole.ndim == len(shape) and whole.shape[-2:] == (1, 1):
            return _before(scores, whole, to)
    return None


def _before(scores: Expr, factor: np.ndarray, to: Editor) -> Expr | None:
    """The same with the factor before the product; Relay reshapes what that gives."""
    read = to.made(scores)
    moved = read if read is not None and read.kind == "reshape" else None
    product = read if read is None or moved is None else to.made(read.args[0])
    if product is None or product.kind not in PRODUCTS:
        return None
    queries, *others = product.args
    if moved is not None:
        factor = _as_product(factor, to.shape(scores), to.shape(product.call))
    if dtype(to, queries) != str(factor.dtype) or not _fits(factor, to.shape(queries)):
        return None
    scaled = to.emit("multiply", queries, to.constant(np.ascontiguousarray(factor)))
    found = to.again(product, [scaled, *others])
    return found if moved is None else to.again(moved, [found, *moved.args[1:]])


def _as_product(
    factor: np.ndarray, scores: list[PrimExpr] | None, product: list[PrimExpr] | None
) -> np.ndarray:
    """A factor of reshaped scores for each product; as it is where these are not matrices."""
    known = [*(scores or [None]), *(product or [None])]
    if scores is None or product is None or not all(isinstance(n, int) for n in known):
        return factor
    if scores[-2:] != product[-2:]:
        return factor
    return np.broadcast_to(factor, (*scores[:-2], 1, 1)).reshape(*product[:-2], 1, 1)


def _fits(factor: np.ndarray, queries: list[PrimExpr] | None) -> bool:
    """Whether it scales queries and makes no more of them."""
    if queries is None or len(queries) != factor.ndim:
        return False
    return all(n in (1, extent) for n, extent in zip(factor.shape, queries, strict=True))
