"""Relax: sums of nothing in what no composite took. TVM starts a sum in the loop over what is
summed, so that one of no elements stays what its memory was.
"""

from __future__ import annotations

import itertools
from typing import Any

from ...codegen.symbolic.empty import is_empty, outputs_of
from ...ir.relax.symbols import text_of
from ...tvm import Schedule, child_blocks, dtype_of, is_reduction, param_buffers, tir, tvm, walk
from ...tvm.rewrite import substitute
from ...tvm.symbolic import asserting, symbols
from ...tvm.types import Expr, PrimExpr, PrimFunc, Stmt


def with_sums_apart(func: PrimFunc) -> PrimFunc:
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
    done = sch.mod["main"]
    return asserting(done, _checks(done, without))


def has_sums(func: PrimFunc) -> bool:
    """Whether a PrimFunc sums anything up, of products or not, that is not known to be nothing."""
    blocks: list[Any] = []
    walk(func.body, blocks.append, "SBlock")
    axes = [axis for block in blocks for axis in block.iter_vars]
    is_empty = any(isinstance(a.dom.extent, tir.IntImm) and a.dom.extent < 1 for a in axes)
    return any(map(is_reduction, axes)) and not is_empty


def _has_some(func: PrimFunc) -> bool:
    found: list[Any] = []
    walk(func.body, lambda block: found.extend(_open_extents(block)), "SBlock")
    return bool(found)


def _open_extents(block: Stmt) -> list[PrimExpr]:
    """The extents that a block sums over, and starts to, which may be 0."""
    extents = [axis.dom.extent for axis in block.iter_vars if is_reduction(axis)]
    is_open = [not isinstance(extent, tir.IntImm) or int(extent) < 1 for extent in extents]
    return [] if block.init is None else [*itertools.compress(extents, is_open)]


def _is_of_places(init: Stmt | None) -> bool:
    """Whether a reduction starts with a place that no element has, -1."""
    found: list[bool] = []
    if init is None:
        return False

    def visit(store: Stmt) -> None:
        is_one = isinstance(store.value, tir.IntImm) and int(store.value) == -1
        found.append(is_one and dtype_of(store.value).startswith("int"))

    walk(init, visit, "BufferStore")
    return len(found) > 1 and any(found)


def refusing_places_of_none(func: PrimFunc, made: PrimFunc) -> PrimFunc:
    """What was `made` of a PrimFunc, for all sizes; an InputError as of `with_sums_apart`."""
    blocks: list[Any] = []
    walk(func.body, blocks.append, "SBlock")
    without = [e for b in blocks if _is_of_places(b.init) for e in _open_extents(b)]
    known, new = symbols(func), symbols(made)
    own = {var: tir.Cast("int64", new[name]) for name, var in known.items() if name in new}
    return asserting(made, [(substitute(c, own), text) for c, text in _checks(func, without)])


def _checks(func: PrimFunc, extents: list[Expr]) -> list[tuple[PrimExpr, str]]:
    """That none of these is 0, if something is to be computed."""
    params = param_buffers(func)
    hollow = is_empty([params[place] for place in outputs_of(func)]) if extents else None
    return [
        (tir.any(extent > 0, hollow), f"size {text_of(extent)}: expected 1 or more")
        for extent in extents
    ]
