"""PrimFuncs of symbolic sizes that call others; on 0.27 only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ._tvm import GENERATION, SBlock, param_buffers, tir, tvm, walk
from ._tvm_rewrite import block_with, sequence, with_names

if GENERATION == "relax":
    import tvm_ffi
    from tvm import s_tir

MOST = (1 << 31) - 1  # elements of a buffer


def size_variable(name: str) -> Any:
    """A variable for a symbolic size, of 32 bits as all indices are."""
    return tir.Var(name, "int32")


def entry(signature: Any, symbols: Sequence[str], which: Any, positive: Iterable[Any] = ()) -> Any:
    """A PrimFunc with the parameters of `signature` that hands them to one of the functions of
    these symbols: to that of the number `which`, to none where it is -1. It raises an InputError
    where one of the variables `positive` is 0.

    Functions of one module, not branches of one function: TVM's passes take much longer for a body
    as large as all of them (CompactBufferAllocation, of 13 kernels: 9 s).
    """
    chosen = tir.Var("kernel", "int32")
    calls = [tir.Evaluate(tir.call_cpacked(s, *signature.params)) for s in symbols]
    checks = [_asserted(size > 0, f"size {size}: expected 1 or more") for size in positive]
    cases = [tir.IfThenElse(chosen == n, call, None) for n, call in enumerate(calls)]
    root = SBlock([], [], [], "root", with_names([(chosen, which)], sequence([*checks, *cases])))
    body = s_tir.SBlockRealize([], tir.const(1, "bool"), root)
    return tir.PrimFunc(signature.params, body, attrs=signature.attrs)


def with_shapes(func: Any, change: Any) -> Any:
    """A PrimFunc whose buffers have each extent as `change` returns it."""

    def changed(kind: Any) -> Any:
        shape = [change(extent) for extent in kind.shape]
        if all(new is old for new, old in zip(shape, kind.shape, strict=True)):
            return kind
        buffer = tir.decl_buffer(
            shape, kind.dtype.dtype, "buffer", None, kind.strides, kind.elem_offset,
            kind.storage_scope, kind.data_alignment, kind.offset_factor, layout=kind.layout,
        )  # fmt: skip
        return buffer.ty

    return tvm_ffi.structural_map(func, ((tir.BufferType, changed),))


def map_products(node: Any, change: Any) -> Any:
    """A statement with each product as `change` makes it."""
    return tvm_ffi.structural_map(node, ((tir.Mul, change),))


def with_predicates(node: Any, change: Any) -> Any:
    """A statement whose blocks run where `change` of their predicates holds."""

    def changed(realize: Any) -> Any:
        return s_tir.SBlockRealize(realize.iter_values, change(realize.predicate), realize.block)

    return tvm_ffi.structural_map(node, ((s_tir.SBlockRealize, changed),))


def each_defined_once(func: Any) -> Any:
    """A PrimFunc in which no two loops have one variable."""
    return s_tir.transform.ConvertSSA()(tvm.IRModule({"main": func}))["main"]


def within_32_bits(func: Any) -> Any:
    """A scheduled PrimFunc that raises an InputError before it does anything, where a buffer has
    more elements than an index of 32 bits reaches.
    """
    checks = [_checked(shape) for shape in _symbolic_shapes(func)]
    if not checks:
        return func
    root = func.body.block
    body = sequence([*checks, root.body])
    block = block_with(root, root.reads, root.writes, body, root.alloc_buffers)
    return func.with_body(s_tir.SBlockRealize([], tir.const(1, "bool"), block))


def _symbolic_shapes(func: Any) -> list[Any]:
    """The distinct shapes of a function's buffers that are not constant."""
    buffers = list(param_buffers(func))

    def visit(node: Any) -> None:
        if isinstance(node, SBlock):
            buffers.extend(node.alloc_buffers)

    walk(func.body, visit)
    shapes = [list(getattr(buffer, "shape", None) or ()) for buffer in buffers]
    opened = [s for s in shapes if not all(isinstance(extent, tir.IntImm) for extent in s)]
    return list({str(shape): shape for shape in opened}.values())


def _checked(shape: Sequence[Any]) -> Any:
    """An assertion that a buffer of this shape has no more elements than that."""
    count: Any = tir.IntImm("int64", 1)
    for extent in shape:
        count = count * tir.Cast("int64", extent)
    text = f"a tensor of shape ({', '.join(map(str, shape))}): expected at most {MOST} elements"
    return _asserted(count <= MOST, text)


def _asserted(condition: Any, text: str) -> Any:
    kind = tvm.ir.StringImm("selfbyoc.InputError")
    return tir.AssertStmt(condition, kind, [tvm.ir.StringImm(text)])
