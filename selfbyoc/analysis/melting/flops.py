"""Arithmetic of a kernel's ops: what it must compute, however it does it (ops/cost.py)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ...codegen.info.op_info import OpInfo
from ...graph import OpGraph
from ...ops.cost import Sizes, flops

MATMULS = ("batch_matmul", "conv1d_transpose", "conv2d", "conv2d_transpose", "dense")


@dataclass(frozen=True)
class Arithmetic:
    """Operations of one kind of op, and how many such ops there are."""

    kind: str
    count: int
    flops: int


def flops_of(op: OpInfo) -> int:
    """Operations that one op asks for."""
    shapes = [[shape for shape, _ in side] for side in (op.inputs, op.outputs)]
    return flops(Sizes(op.kind, op.attrs, *shapes))


def flops_of_graph(graph: OpGraph) -> int:
    """Operations that the ops of a graph ask for."""
    total = 0
    for call in graph.ops:
        shapes = [[value.shape for value in side] for side in (call.inputs, call.outputs)]
        total += flops(Sizes(call.kind, call.attrs, *shapes)) if call.sources else 0
    return total


def multiply_adds_of(op: OpInfo) -> int:
    """Multiply-adds of a convolution or a product of matrices; 0 for other ops."""
    return flops_of(op) // 2 if op.kind in MATMULS else 0


def by_kind(ops: Iterable[OpInfo]) -> tuple[Arithmetic, ...]:
    """Operations by kind of op, the most first."""
    counts: dict[str, int] = {}
    sums: dict[str, int] = {}
    for op in ops:
        counts[op.kind] = counts.get(op.kind, 0) + 1
        sums[op.kind] = sums.get(op.kind, 0) + flops_of(op)
    found = [Arithmetic(kind, counts[kind], sums[kind]) for kind in counts]
    return tuple(sorted(found, key=lambda a: (-a.flops, a.kind)))
