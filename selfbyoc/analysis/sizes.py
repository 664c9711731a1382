"""The sizes of symbols that a report is of: asked for, or those that partitioning read."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..codegen.info.op_record import OpInfo, TensorInfo
from ..errors import InputError, did_you_mean
from ..partition.report import report
from ..runtime.interface import sizes_of
from ..tvm import GENERATION, dtype_of, tir
from ..tvm.rewrite import substitute
from ..tvm.symbolic import symbols
from ..tvm.types import IRModule, PrimExpr, PrimFunc
from .kernels import Kernel


def sizes_for(
    mod: IRModule, found: Sequence[Kernel], asked: Mapping[str, int] | None
) -> dict[str, int]:
    """A size for each symbol of a partitioned module. Raises InputError for what it has not, for no
    size, and for one over the bound.
    """
    read = [dict(report(mod).sizes), *(kernel.source.sizes for kernel in found)]
    known = {name: int(size) for sizes in reversed(read) for name, size in sizes.items()}
    checked = check_asked(asked, known)
    most = {name: limit for name, (limit, _) in sizes_of(mod).items()}
    for name, size in checked.items():
        limit = most.get(name)
        if limit is not None and size > limit:
            raise InputError(f"sizes: {name}: expected at most {limit}, found {size}")
    return {**known, **checked}


def at_sizes(func: PrimFunc, asked: Mapping[str, int] | None) -> tuple[PrimFunc, dict[str, int]]:
    """A PrimFunc with numbers for its symbols, and these. Raises InputError where one has none."""
    variables = symbols(func)
    sizes = check_asked(asked, variables)
    if not variables:
        return func, {}
    if GENERATION == "relay":  # 0.17 substitutes in statements, not in the shapes of parameters
        raise InputError(f"prim_func: expected numbers for extents, found {', '.join(variables)}")
    if missing := [name for name in variables if name not in sizes]:
        example = {name: 128 for name in missing}
        raise InputError(f"prim_func: {', '.join(missing)}: expected a size, as in sizes={example}")
    numbers = {var: tir.IntImm(dtype_of(var), sizes[name]) for name, var in variables.items()}
    return substitute(func, numbers), sizes


def op_at(op: OpInfo, sizes: Mapping[str, int]) -> OpInfo:
    """An op with numbers for symbols. Raises InputError for what is more than a symbol."""
    sides = [tuple(_tensor_at(op, tensor, sizes) for tensor in s) for s in (op.inputs, op.outputs)]
    return replace(op, inputs=sides[0], outputs=sides[1])


def _tensor_at(op: OpInfo, tensor: TensorInfo, sizes: Mapping[str, int]) -> TensorInfo:
    shape = tuple(sizes.get(e, e) if isinstance(e, str) else e for e in tensor.shape)
    unknown = [extent for extent in shape if not isinstance(extent, int)]
    if unknown:
        text = f"expected extents that are numbers or symbols, found {unknown[0]}"
        raise InputError(f"prim_func: {op.name}: {text}")
    return replace(tensor, shape=shape)


def check_asked(asked: object, known: Mapping[str, PrimExpr]) -> dict[str, int]:
    """The sizes that were asked for, of the symbols that are known."""
    if asked is None:
        return {}
    if not isinstance(asked, Mapping):
        kind = type(asked).__name__
        raise InputError(f"sizes: expected a dict such as {{'n': 128}}, found {kind}")
    if asked and not known:
        names = ", ".join(map(repr, asked))
        raise InputError(f"sizes: found {names}; expected none: nothing here is symbolic")
    for name in asked:
        if name not in known:
            near = did_you_mean(str(name), known)
            raise InputError(f"sizes: no symbol {name!r}; expected {', '.join(known)}{near}")
    return {name: _size(name, size) for name, size in asked.items()}


def _size(name: str, size: Any) -> int:
    try:
        found = 0 if isinstance(size, bool) else operator.index(size)
    except TypeError:
        found = 0
    if found < 1:
        raise InputError(f"sizes: {name}: expected a whole number from 1 on, found {size!r}")
    return found
