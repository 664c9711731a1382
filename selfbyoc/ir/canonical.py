"""Importer noise, read away: the same network from any importer gives the same neutral ops.

Each rule looks at one op of a raw graph and may return what it really is. The IR is not touched: an
op that absorbs others keeps their IR nodes among its `sources`, and an op made up here (a reshape
of a bias that the importer stored as [1, C, 1, 1]) has none.

| importer writes                                    | read as                          |
|----------------------------------------------------|----------------------------------|
| add(conv, [broadcast_to](reshape(bias)))           | bias_add(conv, bias)  (TVM issue 18173) |
| add(conv, bias[1, C, 1, 1])                        | bias_add(conv, reshape(bias))    |
| matmul(x, transpose(weight)), matmul(x, weight)    | dense(x, weight)                 |
| matmul, batch_matmul(a, transpose(b)) of batches   | batch_matmul(transpose_b=True)   |
| x * sigmoid(x)                                     | silu                             |
| x * 0.5 * (1 + erf(x / sqrt 2)), in any order      | gelu                             |
| maximum(x, 0)                                      | relu                             |
| sum(stack(broadcast_to(a), broadcast_to(b)))       | add                              |
| mean over the spatial axes                         | global_avg_pool2d                |
| requantize(x, scales and zero points)              | requantize(x), they as attributes |
| qnn_conv2d with zero points of 0                   | conv2d                           |
"""

from __future__ import annotations

from .graph import OpGraph, name_ops
from .rules import RULES, Rewriter


def canonicalize(graph: OpGraph) -> OpGraph:
    """Apply every rule until none fires. Raw graph -> neutral graph."""
    changed = True
    while changed:
        graph, changed = _one_pass(graph)
    return OpGraph(graph.inputs, name_ops(graph.ops), graph.outputs)


def _one_pass(graph: OpGraph) -> tuple[OpGraph, bool]:
    rewriter = Rewriter(graph)
    for position, call in enumerate(graph.ops):
        for rule in RULES:
            found = rule(rewriter, call)
            if found is None:
                continue
            stand_in, absorbed = found
            gone = {id(a) for a in absorbed}
            ops = [*graph.ops[:position], *stand_in, *graph.ops[position + 1 :]]
            return OpGraph(
                graph.inputs, tuple(o for o in ops if id(o) not in gone), graph.outputs
            ), True
    return graph, False
