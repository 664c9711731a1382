"""TVMScript and tensor intrinsics, under one name on both generations."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import SimpleNamespace

from . import GENERATION, tir
from .types import Intrinsic, PrimFunc

if GENERATION == "relax":
    from tvm import s_tir
    from tvm.script import tirx as dialect

    TensorIntrin = s_tir.TensorIntrin
else:
    from tvm.script import tir as dialect

    TensorIntrin = tir.TensorIntrin


def _dialect() -> SimpleNamespace:
    """TVMScript's names for functions of blocks. 0.27 calls a block `sblock`, 0.17 knows no
    `s_tir=True` beside `@T.prim_func`; here both go by `T.block` and `@T.prim_func(s_tir=True)`.
    """
    names = {name: getattr(dialect, name) for name in dir(dialect) if not name.startswith("__")}
    if GENERATION == "relax":
        names["block"], names["alloc_buffer"] = names["sblock"], names["sblock_alloc_buffer"]
        names["block_attr"] = names["sblock_attr"]
    else:
        names["prim_func"] = _prim_func
    return SimpleNamespace(**names)


@functools.wraps(dialect.prim_func)
def _prim_func(
    func: Callable[..., object] | None = None,
    private: bool = False,
    check_well_formed: bool = True,
    s_tir: bool = True,
) -> PrimFunc:
    return dialect.prim_func(func, private, check_well_formed)


def is_prim_func(value: object) -> bool:
    """Whether it is a function of TensorIR."""
    return isinstance(value, tir.PrimFunc)


def register_intrinsic(name: str, description: PrimFunc, implementation: PrimFunc) -> None:
    """Make a tensor intrinsic known to TVM, in place of one of the same name."""
    TensorIntrin.register(name, description, implementation, override=True)


def known_intrinsic(name: str) -> Intrinsic | None:
    """The tensor intrinsic of this name; None where there is none."""
    return TensorIntrin.get(name, allow_missing=True)


T = _dialect()
"""TVMScript's dialect of TensorIR, in one spelling for both TVMs; for `intrinsic`."""
