"""PrimFuncs of symbolic sizes: which there are, what they assert, and the memory that they may
have.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from . import GENERATION, BlockRealize, StringImm, dtype_of, param_buffers, tir, tvm, walk
from .rewrite import block_with, sequence, substitute
from .types import Buffer, PrimExpr, PrimFunc, Stmt, TirNode

if GENERATION == "relax":
    import tvm_ffi
    from tvm import s_tir

MOST = (1 << 31) - 1  # elements of a buffer
INPUT_ERROR = "InputError: "  # what 0.17 says of one, whose assertions know no kinds


def size_variable(name: str, func: PrimFunc | None = None) -> PrimExpr:
    """A variable for a symbolic size: of 32 bits, as all indices are but those of functions (such
    as this `func` of some size) that compute with integers of 64.
    """
    extents = iter(()) if func is None else _extents(func)
    return tir.Var(name, next(map(dtype_of, extents), "int32"))


def symbols(func: PrimFunc) -> dict[str, PrimExpr]:
    """The variables among the extents of a PrimFunc's parameters, by name."""
    found: dict[str, Any] = {}
    for extent in _extents(func):
        if isinstance(extent, tir.Var):
            found.setdefault(str(extent.name), extent)
    return found


def _extents(func: PrimFunc) -> Iterator[PrimExpr]:
    for buffer in param_buffers(func):
        yield from getattr(buffer, "shape", None) or ()


def with_own_names(func: PrimFunc) -> PrimFunc:
    """The same PrimFunc, its symbols known by name: two of one name get other ones."""
    known = symbols(func)
    new: dict[Any, Any] = {}
    for var in (extent for extent in _extents(func) if isinstance(extent, tir.Var)):
        if not known[str(var.name)].same_as(var) and var not in new:
            new[var] = tir.Var(f"{var.name}_{len(new)}_", dtype_of(var))
    return substitute(func, new) if new else func


def with_identifiers(func: PrimFunc) -> PrimFunc:
    """The same PrimFunc, its symbols named as C wants it: one may be called `min(6, n)`."""
    named = ((var, re.sub(r"\W+", "_", name).strip("_")) for name, var in symbols(func).items())
    new = {var: tir.Var(name, dtype_of(var)) for var, name in named if name != str(var.name)}
    return substitute(func, new) if new else func


def rooted(block: Stmt) -> Stmt:
    """The body of a scheduled PrimFunc of this block."""
    return BlockRealize([], tir.const(1, "bool"), block)


def with_shapes(func: PrimFunc, change: Callable[[PrimExpr], PrimExpr]) -> PrimFunc:
    """A lowered PrimFunc whose allocations have each extent as `change` returns it."""

    def of_relax(kind: Buffer) -> Buffer:
        shape = [change(extent) for extent in kind.shape]
        if all(new is old for new, old in zip(shape, kind.shape, strict=True)):
            return kind
        buffer = tir.decl_buffer(
            shape, kind.dtype.dtype, "buffer", None, kind.strides, kind.elem_offset,
            kind.storage_scope, kind.data_alignment, kind.offset_factor, layout=kind.layout,
        )  # fmt: skip
        return buffer.ty

    def of_relay(node: Stmt) -> Stmt:
        extents = [change(extent) for extent in node.extents]
        return tir.Allocate(
            node.buffer_var, node.dtype, extents, node.condition, node.body, node.annotations
        )

    if GENERATION == "relax":
        return tvm_ffi.structural_map(func, ((tir.BufferType, of_relax),))
    body = tir.stmt_functor.ir_transform(func.body, None, of_relay, ["tir.Allocate"])
    return func.with_body(body)


def map_products(node: PrimFunc, change: Callable[[PrimExpr], PrimExpr]) -> TirNode:
    """A statement with each product as `change` makes it."""
    return tvm_ffi.structural_map(node, ((tir.Mul, change),))


def with_factors_last(func: PrimFunc) -> PrimFunc:
    """A PrimFunc with (part * tiles) * 6 for part * (tiles * 6): of the second TVM does not see
    that 6 divides it, nor then that what lies in a tile is of a constant size.
    """

    def change(product: PrimExpr) -> PrimExpr:
        for a, b in ((product.a, product.b), (product.b, product.a)):
            if isinstance(b, tir.Mul) and isinstance(b.b, tir.IntImm) and not _is_number(a):
                return a * b.a * b.b
        return product

    if GENERATION == "relax":
        return map_products(func, change)
    return func.with_body(tir.stmt_functor.ir_transform(func.body, None, change, ["tir.Mul"]))


def _is_number(expr: PrimExpr) -> bool:
    return isinstance(expr, (tir.IntImm, tir.FloatImm))


def each_defined_once(func: PrimFunc) -> PrimFunc:
    """A PrimFunc in which no two loops have one variable."""
    return s_tir.transform.ConvertSSA()(tvm.IRModule({"main": func}))["main"]


def within_32_bits(func: PrimFunc) -> PrimFunc:
    """A scheduled PrimFunc that raises an InputError before it does anything, where a buffer has
    more elements than an index of 32 bits reaches.
    """
    return asserting(func, [_few_enough(shape) for shape in _symbolic_shapes(func)])


def asserting(func: PrimFunc, checks: Sequence[tuple[PrimExpr, str]]) -> PrimFunc:
    """A PrimFunc that raises an InputError with such a text, before it does anything, where a
    condition does not hold.
    """
    if not checks:
        return func
    root = func.body.block
    body = with_assertions(checks, root.body)
    return func.with_body(
        rooted(block_with(root, root.reads, root.writes, body, root.alloc_buffers))
    )


def _symbolic_shapes(func: PrimFunc) -> list[list[PrimExpr]]:
    """The distinct shapes of a function's buffers that are not constant."""
    buffers = list(param_buffers(func))

    def visit(node: Stmt) -> None:
        buffers.extend(node.alloc_buffers)

    walk(func.body, visit, "SBlock", "Block")
    shapes = [list(getattr(buffer, "shape", None) or ()) for buffer in buffers]
    opened = [s for s in shapes if not all(isinstance(extent, tir.IntImm) for extent in s)]
    return list({str(shape): shape for shape in opened}.values())


def _few_enough(shape: Sequence[PrimExpr]) -> tuple[PrimExpr, str]:
    """Whether a buffer of this shape has no more elements than that; what to say else."""
    count: Any = tir.IntImm("int64", 1)
    for extent in shape:
        count = count * tir.Cast("int64", extent)
    text = f"a tensor of shape ({', '.join(map(str, shape))}): expected at most {MOST} elements"
    return count <= MOST, text


def with_assertions(checks: Iterable[tuple[PrimExpr, str]], body: Stmt) -> Stmt:
    """A statement after assertions. Theirs is an InputError."""
    if GENERATION == "relax":
        kind = StringImm("selfbyoc.InputError")
        made = [tir.AssertStmt(c, kind, [StringImm(text)]) for c, text in checks]
        return sequence([*made, body])
    for condition, text in reversed([*checks]):
        body = tir.AssertStmt(condition, StringImm(f"{INPUT_ERROR}{text}"), body)
    return body
