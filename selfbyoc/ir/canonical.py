"""Importer noise, read away: the same network from any importer gives the same neutral ops.

Each rule looks at one op of a raw graph and may return what it really is. The IR is not touched: an
op that absorbs others keeps their IR nodes among its `sources`, and an op made up here (a reshape
of a bias that the importer stored as [1, C, 1, 1]) has none.

| importer writes                                    | read as                          |
|----------------------------------------------------|----------------------------------|
| add(conv, [broadcast_to](reshape(bias)))           | bias_add(conv, bias)  (TVM issue 18173) |
| add(conv, bias[1, C, 1, 1])                        | bias_add(conv, reshape(bias))    |
| matmul(x, transpose(weight)), matmul(x, weight)    | dense(x, weight)                 |
| batch_matmul(x, broadcast_to(matrix))              | matmul(x, matrix)                |
| matmul, batch_matmul(a, transpose(b)) of batches   | batch_matmul(transpose_b=True)   |
| x * sigmoid(x)                                     | silu                             |
| x * clip(x + 3, 0, 6) / 6, x * clip(x / 6 + .5, 0, 1) | hard_swish                    |
| x * 0.5 * (1 + erf(x / sqrt 2)), in any order      | gelu                             |
| x * (0.5 + 0.5 * erf(x / sqrt 2))                  | gelu                             |
| x * 0.5 * (1 + tanh(.8 (x + 0.0447 x^3)))          | gelu_tanh                        |
| maximum(x, 0)                                      | relu                             |
| minimum(maximum(x, low), high), and the reverse    | clip                             |
| clip(clip(x))                                      | clip                             |
| (x - mean) / sqrt(variance + eps) * gamma + beta   | layer_norm                       |
| x / sqrt(mean(x * x) + eps) * gamma                | rms_norm                         |
| sum, max, min of stack(broadcast_to(a), b)         | add, maximum, minimum            |
| mean over the spatial axes                         | global_avg_pool2d                |
| requantize(x, scales and zero points)              | requantize(x), they as attributes |
| reshape(dense(reshape(x)) + bias) of merged rows   | bias_add(dense(x), bias)         |
| reshape(batch_matmul(reshape(a), reshape(b)))      | batch_matmul(a, b)               |
| where(all of the row is -inf, 0, softmax(product)) | softmax                          |
| x / (k + a * avg_pool3d(x * x)) ** b               | lrn                              |
| qnn_conv2d with zero points of 0                   | conv2d                           |
| conv2d(pad(x, value)) of bytes                      | conv2d(x), padded by the value   |
| conv2d(x, cast(weight of halves))                  | conv2d(x, weight), laid out so   |
| transpose(transpose(x))                            | transpose                        |
| dropout; reshape, cast, ... that change nothing    | the op before, or after          |

A rule that recognises an importer's form but cannot read it away says why: `Rewriter.decline`.
Constants count by their value, whatever their shape; one of more axes than its tensor gives the
result more axes (0.5 of [1, 1, 1]), which no op on the left does: `_read` declines those.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ..graph import OpCall, OpGraph, name_ops
from .rules.general import RULES
from .rules.rewriter import Declined, Draft, Rewrite, Rewriter, Rule


def canonicalize(graph: OpGraph, kinds: Collection[str] | None = None) -> OpGraph:
    """Apply every rule until none fires. Raw graph -> neutral graph. Of `kinds`, nothing else is
    made: a graph of open sizes that was read in these, at others.
    """
    draft = Draft(graph)
    while _one_pass(draft, kinds):
        pass
    ops = name_ops(draft.ops)
    return OpGraph(graph.inputs, ops, graph.outputs, tuple(_absorbed(graph.ops, ops)))


def declined(graph: OpGraph) -> tuple[Declined, ...]:
    """What the rules could nearly read away in a neutral graph, in topological order."""
    rewriter = Rewriter(graph)
    for call in graph.ops:
        for rule in RULES:
            _read(rule, rewriter, call)
    return tuple(rewriter.declined)


def _read(rule: Rule, rewriter: Rewriter, call: OpCall) -> Rewrite | None:
    """What a rule makes of an op, unless that has another shape than what it is computed from."""
    found = rule(rewriter, call)
    for made in found[0] if found is not None else ():
        before, after = made.inputs[0], made.outputs[0]
        if made.kind in _OF_ONE_SHAPE and before.shape != after.shape:
            rewriter.decline(
                call, made.kind, f"a constant in it makes {after.type} of {before.type}"
            )
            return None
    return found


_OF_ONE_SHAPE = frozenset(
    {"clip", "gelu", "gelu_tanh", "hard_swish", "layer_norm", "lrn", "relu", "rms_norm", "silu",
     "softmax"}
)  # fmt: skip


def _one_pass(draft: Draft, kinds: Collection[str] | None) -> bool:
    """The rules at every op, at what they made of it too; -> whether one fired. What that lets
    fire at an op before is the next pass's.
    """
    rewriter, changed = Rewriter(draft), False
    for position in range(len(draft)):
        while _rewritten(rewriter, draft, position, kinds):
            changed = True
    return changed


def _rewritten(
    rewriter: Rewriter, draft: Draft, position: int, kinds: Collection[str] | None
) -> bool:
    for call in draft.slot(position):
        for rule in RULES:
            found = _read(rule, rewriter, call)
            if found is not None and (kinds is None or all(c.kind in kinds for c in found[0])):
                draft.replace(call, *found)
                return True
    return False


def _absorbed(written: Iterable[OpCall], ops: Iterable[OpCall]) -> Iterable[tuple[str, str, str]]:
    """The ops that are not what was written: an op keeps the IR nodes of all that it absorbed."""
    read_as = {source: call for call in ops for source in call.sources}
    for call in written:
        now = read_as.get(call.sources[-1]) if call.sources else None
        if now is not None and now.kind != call.kind:
            yield call.name, call.kind, now.name
