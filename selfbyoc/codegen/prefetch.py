"""Software prefetch of packed weights, put into a scheduled function just before it is lowered.

A kernel reads a weight once for each call, from memory or the last cache: the first tile of a panel
waits for it, as the hardware's prefetcher starts anew at every page of 4 KB. So the tiles of one
piece of a weight ask for the lines of the next. A schedule says where, by `ahead` on the loop
over tiles; TensorIR has no step for it.
"""

from __future__ import annotations

import json
from typing import Any

from .._tvm import dtype_of, param_buffers, region_buffer, tir, walk
from .._tvm_rewrite import map_loops, prefetch_op, substitute, with_body

AHEAD = "tefuse.prefetch"  # an annotation of a loop


def ahead(buffer: str, size: int, wide: int) -> str:
    """The annotation: each run of the loop reads `size` of axis 1 from `wide` of axis 0 of a
    buffer [block, k, lane], and the next run the next ones.
    """
    return json.dumps([buffer, size, wide])


def with_prefetch(func: Any) -> Any:
    """A scheduled PrimFunc whose annotated loops prefetch."""
    params = {str(b.name): b for b in param_buffers(func) if hasattr(b, "shape")}

    def prefetching(loop: Any) -> Any:
        if AHEAD not in (loop.annotations or {}):
            return loop
        name, size, wide = json.loads(str(loop.annotations[AHEAD]))
        first = _first(loop, params[name]) if name in params else None
        if first is None:
            return loop
        return with_body(loop, _lines(loop, params[name], first, size, wide))

    return map_loops(func, prefetching)


def _first(loop: Any, buffer: Any) -> list[Any] | None:
    """The indices of the first element that the first run of a loop reads of a buffer."""
    inner: dict[Any, Any] = {}
    found: list[Any] = []

    def visit(node: Any) -> None:
        kind = type(node).__name__
        if kind == "For":
            inner[node.loop_var] = tir.const(0, dtype_of(node.loop_var))
        elif kind.endswith("BlockRealize"):
            inner.update(
                zip((iv.var for iv in node.block.iter_vars), node.iter_values, strict=True)
            )
        elif kind in ("BufferLoad", "TensorLoad") and region_buffer(node).same_as(buffer):
            found.append(list(node.indices))

    walk(loop, visit)
    if not found:
        return None
    return [substitute(substitute(index, inner), inner) for index in found[0]]


def _lines(loop: Any, buffer: Any, first: list[Any], size: int, wide: int) -> Any:
    """The loop's body behind its share of the next piece's lines.

    A piece divides axis 1, so the next one is behind it or begins the next blocks: its address is
    computed once for each run, and every line costs one instruction.
    """
    share = -(-size // int(loop.extent))
    whole = int(buffer.shape[1])
    block = first[0] + tir.floordiv(first[1] + size, whole) * wide
    k = tir.floormod(first[1] + size, whole) + loop.loop_var * share
    lines = [
        tir.Evaluate(prefetch_op(tir.BufferLoad(buffer, [block + w, k + i, 0])))
        for w in range(wide)
        for i in range(share)
    ]
    return tir.SeqStmt([*lines, loop.body])
