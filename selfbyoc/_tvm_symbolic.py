"""PrimFuncs of symbolic sizes that call others; on 0.27 only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._tvm import GENERATION, SBlock, tir
from ._tvm_rewrite import sequence, with_names

if GENERATION == "relax":
    import tvm_ffi
    from tvm import s_tir


def size_variable(name: str) -> Any:
    """A variable for a symbolic size, of 32 bits as all indices are."""
    return tir.Var(name, "int32")


def entry(signature: Any, symbols: Sequence[str], which: Any) -> Any:
    """A PrimFunc with the parameters of `signature` that hands them to one of the functions of
    these symbols: to that of the number `which`.

    Functions of one module, not branches of one function: TVM's passes take much longer for a body
    as large as all of them (CompactBufferAllocation, of 13 kernels: 9 s).
    """
    chosen = tir.Var("kernel", "int32")
    calls = [tir.Evaluate(tir.call_cpacked(s, *signature.params)) for s in symbols]
    cases = [tir.IfThenElse(chosen == n, call, None) for n, call in enumerate(calls)]
    root = SBlock([], [], [], "root", with_names([(chosen, which)], sequence(cases)))
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
