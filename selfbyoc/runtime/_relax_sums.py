"""Relax: sums of nothing in what no composite took. TVM starts a sum in the loop over what is
summed, so that one of no elements stays what its memory was.
"""

from __future__ import annotations

import itertools
from typing import Any

from .._tvm import (
    Schedule,
    child_blocks,
    dtype_of,
    is_reduction,
    param_buffers,
    tir,
    tvm,
    walk,
)
from .._tvm_symbolic import asserting
from ..codegen.symbolic.nothing import is_empty, outputs_of
from ..ir._relax_symbols import text_of


def with_sums_apart(func: Any) -> Any:
    """A PrimFunc as TVM lowers it, whose sums that may be of nothing start in front of the loops
    over what is summed; one that looks for a place, as of the largest element, is an InputError
    where there is none.
    """
    if not _has_some(func):
        return func
    sch = Schedule(tvm.IRModule({"main": func}))
    without: list[Any] = []  # extents that have to be more than 0
    for block in child_blocks(sch):
        made = sch.get(block)
        pairs = zip(sch.get_loops(block), made.iter_vars, strict=False)
        summed = [loop for loop, axis in pairs if is_reduction(axis)]
        extents = _open_extents(made)
        if not extents or not summed:
            continue
        without += extents if _is_of_places(made.init) else []
        sch.decompose_reduction(block, summed[0])
    return _refusing(sch.mod["main"], without)


def _has_some(func: Any) -> bool:
    found: list[Any] = []
    walk(func.body, lambda block: found.extend(_open_extents(block)), "SBlock")
    return bool(found)


def _open_extents(block: Any) -> list[Any]:
    """The extents that a block sums over, and starts to, which may be 0."""
    extents = [axis.dom.extent for axis in block.iter_vars if is_reduction(axis)]
    is_open = [not isinstance(extent, tir.IntImm) or int(extent) < 1 for extent in extents]
    return [] if block.init is None else [*itertools.compress(extents, is_open)]


def _is_of_places(init: Any) -> bool:
    """Whether a reduction starts with a place that no element has, -1."""
    found: list[bool] = []

    def visit(store: Any) -> None:
        is_one = isinstance(store.value, tir.IntImm) and int(store.value) == -1
        found.append(is_one and dtype_of(store.value).startswith("int"))

    walk(init, visit, "BufferStore")
    return len(found) > 1 and any(found)


def _refusing(func: Any, extents: list[Any]) -> Any:
    """A PrimFunc that raises where one of these is 0, and something is to be computed."""
    if not extents:
        return func
    params = param_buffers(func)
    hollow = is_empty([params[place] for place in outputs_of(func)])
    checks = [
        (tir.any(extent > 0, hollow), f"size {text_of(extent)}: expected 1 or more")
        for extent in extents
    ]
    return asserting(func, checks)
