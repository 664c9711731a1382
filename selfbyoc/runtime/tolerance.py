"""The one table of tolerances: by dtype, growing with the length of the longest reduction."""

from __future__ import annotations

import math

import numpy as np

from ..ir.graph import OpGraph

# Unit roundoff of each dtype; the bound below is relative to the largest magnitude of the result.
ROUNDOFF = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24, "float64": 2.0**-53}


def tolerance(dtype: str, reduction: int) -> float:
    """Relative to max|expected|: errors of a sum of n terms grow like sqrt(n); integers are
    exact.
    """
    if dtype not in ROUNDOFF:
        return 0.0
    return ROUNDOFF[dtype] * (16 + 4 * math.sqrt(reduction))


def longest_reduction(graph: OpGraph) -> int:
    """Terms in the longest chain of sums of a graph: lengths of reductions one behind the other add
    up.
    """
    length: dict[int, int] = {}
    for call in graph.ops:
        before = max((length.get(id(v), 0) for v in call.inputs), default=0)
        for value in call.outputs:
            length[id(value)] = before + _terms(call)
    return max((length.get(id(v), 0) for v in graph.outputs), default=0)


def _terms(call: object) -> int:
    kind, inputs, outputs = call.kind, call.inputs, call.outputs  # type: ignore[attr-defined]
    if kind == "conv2d":
        return math.prod(inputs[1].shape) // max(1, max(inputs[1].shape[0], 1))
    if kind in ("dense", "batch_matmul"):
        return inputs[0].shape[-1]
    if kind in ("softmax", "layer_norm"):
        return inputs[0].shape[-1]
    if kind in ("mean", "sum", "avg_pool2d", "global_avg_pool2d"):
        return max(1, math.prod(inputs[0].shape) // max(1, math.prod(outputs[0].shape)))
    return 1


def first_wrong(found: np.ndarray, expected: np.ndarray, dtype: str, reduction: int) -> str | None:
    """None, or which element is furthest off and by how much; a NaN is always wrong."""
    if found.shape != expected.shape:
        return f"shape {found.shape}, expected {expected.shape}"
    error = np.abs(found.astype(np.float64) - expected.astype(np.float64))
    bound = tolerance(dtype, reduction) * max(1e-30, float(np.abs(expected).max(initial=0)))
    wrong = ~(error <= bound)
    if not wrong.any():
        return None
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return (
        f"{int(wrong.sum())} of {wrong.size} elements, first {list(at)}: "
        f"{found[at]}, expected {expected[at]} (bound {bound:.1e})"
    )
