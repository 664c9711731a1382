"""The te operations under a result, and the names of the blocks that they become."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..tvm import te
from ..tvm.types import PrimFunc, Tensor, TeOperation


def te_order(tensors: Sequence[Tensor]) -> list[TeOperation]:
    """The te operations under some tensors, inputs first: the order in which create_prim_func makes
    blocks.
    """
    found: dict[Any, None] = {}

    def visit(operation: TeOperation) -> None:
        if operation in found:
            return
        for tensor in operation.input_tensors:
            visit(tensor.op)
        found[operation] = None

    for tensor in tensors:
        visit(tensor.op)
    return list(found)


def block_names(args: Sequence[Tensor]) -> dict[TeOperation, str]:
    """te operation -> the name of its block; create_prim_func makes names unique by counting."""
    used: dict[str, int] = {}
    names: dict[Any, str] = {}
    for operation in te_order(args):
        if not isinstance(operation, te.ComputeOp):
            continue
        base = str(operation.name)
        names[operation] = base if base not in used else f"{base}_{used[base]}"
        used[base] = used.get(base, 0) + 1
    return names


def with_own_buffers(func: PrimFunc, first: int, count: int) -> PrimFunc:
    """A PrimFunc with so many parameters, from the first of them, as buffers of its own."""
    if not count:
        return func
    own, params = func.params[first : first + count], list(func.params)
    root = func.body.block
    block = type(root)(
        root.iter_vars, root.reads, root.writes, root.name_hint, root.body, root.init,
        [*root.alloc_buffers, *(func.buffer_map[param] for param in own)], root.match_buffers,
        root.annotations,
    )  # fmt: skip
    body = type(func.body)(func.body.iter_values, func.body.predicate, block)
    del params[first : first + count]
    kept = {param: func.buffer_map[param] for param in params}
    return type(func)(params, body, func.ret_type, kept, func.attrs)
