"""Relax: tensors whose sizes have to be equal, as kernels that say so.

A match_cast would do, but for two things: its error is the virtual machine's own, and 0.27's
CanonicalizeBindings drops one to a size that it knows already.
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm import relax

from ...ir.relax.symbols import text_of
from ...tvm import te, tir
from ...tvm.alignment import any_alignment
from ...tvm.symbolic import asserting
from ...tvm.types import BlockBuilder, Expr, PrimExpr, Tensor
from .algebra import Algebra, Extent


def with_sizes(builder: BlockBuilder, x: Expr, shape: Sequence[Extent]) -> Expr:
    """A tensor by another shape, which has to be its own: a call with others is an InputError,
    where it computes this. A copy.
    """
    given, wanted = _extents(x), list(shape)
    there, own = _own(given, "a"), _own(wanted, "b")
    source = te.placeholder(there, str(x.ty.dtype), "x")
    pairs = zip(there, own, given, wanted, strict=True)
    checks = [(a == b, _text(said, size)) for a, b, said, size in pairs if said is not size]
    return _copied(builder, [x], [source], own, wanted, checks)


def of_one_size_or_1(builder: BlockBuilder, places: Expr, x: Expr, axis: int) -> Expr:
    """Places in an axis of a tensor, of which there have to be as many as elements, or of these
    one. A copy.
    """
    (count,), given = _extents(places), _extents(x)
    (own,), there = _own([count], "b"), _own(given, "a")
    sources = [te.placeholder([own], "int64", "p"), te.placeholder(there, str(x.ty.dtype), "x")]
    holds = tir.any(there[axis] == own, there[axis] == 1)
    text = f"size {text_of(given[axis])}: expected 1 or {text_of(count)}"
    return _copied(builder, [places, x], sources, [own], [count], [(holds, text)])


def of_as_many(builder: BlockBuilder, algebra: Algebra, x: Expr, shape: Sequence[Extent]) -> Expr:
    """A tensor in another shape, which has to have as many elements: of others TVM leaves out what
    is too much.
    """
    count, wanted = algebra.product(_extents(x)), algebra.product(shape)
    if not algebra.are_equal(count, wanted):
        flat = builder.emit(relax.op.reshape(x, relax.ShapeExpr([count])))
        x = with_sizes(builder, flat, [wanted])
    return relax.op.reshape(x, relax.ShapeExpr(shape))


def _extents(x: Expr) -> list[Extent]:
    return [int(e) if isinstance(e, tir.IntImm) else e for e in x.ty.shape.values]


def _copied(
    builder: BlockBuilder,
    read: Sequence[Expr],
    sources: Sequence[Tensor],
    own: Sequence[Extent],
    shape: Sequence[Extent],
    checks: Sequence[tuple[PrimExpr, str]],
) -> Expr:
    """A copy of the first tensor in this shape by a kernel that reads `sources`, its own names for
    them, and has `own` ones for the sizes.
    """
    func = te.create_prim_func([*sources, te.compute(own, lambda *at: sources[0](*at), "y")])
    made = any_alignment(asserting(func, checks)).without_attr("global_symbol")
    kernel = builder.add_func(made.with_attr("tirx.is_scheduled", True), "one_size")
    ty = relax.TensorType(shape, read[0].ty.dtype)
    return builder.emit(relax.call_tir(kernel, list(read), ty))


def _own(extents: Sequence[Extent], letter: str) -> list[Extent]:
    """With a variable for each size that is no number."""
    return [
        e if isinstance(e, int) else tir.Var(f"{letter}{n}", "int64") for n, e in enumerate(extents)
    ]


def _text(found: Extent, wanted: Extent) -> str:
    if isinstance(wanted, int):
        return f"size {text_of(found)}: expected {wanted}"
    return f"sizes {text_of(wanted)} and {text_of(found)}: expected to be equal"
