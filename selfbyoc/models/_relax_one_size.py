"""Relax: tensors whose sizes have to be equal, as kernels that say so.

A match_cast would do, but for two things: its error is the virtual machine's own, and 0.27's
CanonicalizeBindings drops one to a size that it knows already.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import relax

from .._tvm import te, tir
from .._tvm_alignment import any_alignment
from .._tvm_symbolic import asserting
from ..ir._relax_symbols import text_of
from ._relax_algebra import Algebra, Extent


def with_sizes(builder: Any, x: Any, shape: Sequence[Extent]) -> Any:
    """A tensor by another shape, which has to be its own: a call with others is an InputError,
    where it computes this. A copy.
    """
    func = _copying(_extents(x), list(shape), x.ty.dtype)
    return builder.emit(
        relax.call_tir(builder.add_func(func, "one_size"), [x], relax.TensorType(shape, x.ty.dtype))
    )


def of_as_many(builder: Any, algebra: Algebra, x: Any, shape: Sequence[Extent]) -> Any:
    """A tensor in another shape, which has to have as many elements: of others TVM leaves out what
    is too much.
    """
    count, wanted = algebra.product(_extents(x)), algebra.product(shape)
    if not algebra.are_equal(count, wanted):
        flat = builder.emit(relax.op.reshape(x, relax.ShapeExpr([count])))
        x = with_sizes(builder, flat, [wanted])
    return relax.op.reshape(x, relax.ShapeExpr(shape))


def _extents(x: Any) -> list[Extent]:
    return [int(e) if isinstance(e, tir.IntImm) else e for e in x.ty.shape.values]


def _copying(given: Sequence[Extent], shape: Sequence[Extent], dtype: Any) -> Any:
    """A PrimFunc from one shape to the other."""
    there, wanted = (_own(each, letter) for each, letter in ((given, "a"), (shape, "b")))
    x = te.placeholder(there, str(dtype), "x")
    func = te.create_prim_func([x, te.compute(wanted, lambda *at: x(*at), "y")])
    pairs = zip(there, wanted, given, shape, strict=True)
    checks = [(a == b, _text(said, size)) for a, b, said, size in pairs if said is not size]
    made = any_alignment(asserting(func, checks)).without_attr("global_symbol")
    return made.with_attr("tirx.is_scheduled", True)


def _own(extents: Sequence[Extent], letter: str) -> list[Any]:
    """With a variable for each size that is no number."""
    return [
        e if isinstance(e, int) else tir.Var(f"{letter}{n}", "int64") for n, e in enumerate(extents)
    ]


def _text(found: Extent, wanted: Extent) -> str:
    if isinstance(wanted, int):
        return f"size {text_of(found)}: expected {wanted}"
    return f"sizes {text_of(wanted)} and {text_of(found)}: expected to be equal"
