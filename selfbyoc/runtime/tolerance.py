"""The one table of tolerances: by dtype, growing with the length of the longest reduction."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..graph import OpGraph, Value

# Unit roundoff of each dtype; the bound below is relative to the largest magnitude of the result.
ROUNDOFF = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24, "float64": 2.0**-53}

# Smallest denormal of each: what is left of the precision near zero.
SMALLEST = {"float16": 2.0**-24, "bfloat16": 2.0**-133, "float32": 2.0**-149, "float64": 2.0**-1074}


def tolerance(dtype: str, reduction: int) -> float:
    """Relative to max|expected|: errors of a sum of n terms grow like sqrt(n); integers are
    exact.
    """
    if dtype not in ROUNDOFF:
        return 0.0
    return ROUNDOFF[dtype] * (16 + 4 * math.sqrt(reduction))


def longest_reduction(graph: OpGraph) -> int:
    """Terms in the longest chain of sums of a graph: lengths of reductions one after the other add
    up.
    """
    length: dict[Value, int] = {}
    for call in graph.ops:
        before = max((length.get(v, 0) for v in call.inputs), default=0)
        for value in call.outputs:
            length[value] = before + terms(call)
    return max((length.get(v, 0) for v in graph.outputs), default=0)


def terms(call: object) -> int:
    """How many numbers an op adds up for one of its result."""
    kind, inputs, outputs = call.kind, call.inputs, call.outputs  # type: ignore[attr-defined]
    if kind == "conv2d":
        return math.prod(inputs[1].shape) // max(1, max(inputs[1].shape[0], 1))
    if kind in ("conv1d_transpose", "conv2d_transpose"):
        return math.prod(inputs[1].shape) // max(1, inputs[1].shape[1])
    if kind in ("dense", "batch_matmul"):
        return inputs[0].shape[-1]
    if kind in ("softmax", "layer_norm", "rms_norm"):
        return inputs[0].shape[-1]
    if kind in ("lstm", "peephole_lstm", "gru", "rnn"):  # each step adds to the one before
        return inputs[0].shape[0] * inputs[1].shape[-1]
    if kind == "tree_ensemble":
        return inputs[4].shape[0]
    if kind in ("mean", "sum", "avg_pool2d", "global_avg_pool2d"):
        return max(1, math.prod(inputs[0].shape) // max(1, math.prod(outputs[0].shape)))
    return 1


@dataclass(frozen=True)
class Difference:
    """The first element that is out of bounds, and how many are."""

    index: tuple[int, ...]
    found: float
    expected: float
    bound: float
    count: int
    of: int

    def __str__(self) -> str:
        return (
            f"{self.count} of {self.of} elements, first {list(self.index)}: "
            f"{self.found}, expected {self.expected} (bound {self.bound:.1e})"
        )


def bound_of(expected: np.ndarray, dtype: str, reduction: int) -> float:
    """How far an element may be off: relative to the largest magnitude of the whole result.

    Below the normal numbers a roundoff is no longer relative to anything: each term may be off by
    half of the smallest denormal. A result of denormals alone is compared to that, and a result
    that is zero everywhere must be as good as zero.
    """
    relative = tolerance(dtype, reduction)
    finite = expected[np.isfinite(expected)] if expected.dtype.kind == "f" else expected
    largest = float(np.abs(finite.astype(np.float64)).max(initial=0))
    least = SMALLEST.get(dtype, 0.0) / 2 * relative / ROUNDOFF.get(dtype, 1.0)
    return relative * largest + least


def difference(
    found: np.ndarray, expected: np.ndarray, dtype: str, reduction: int, slack: float = 0.0
) -> Difference | None:
    """None, or the first element out of bounds (by `slack` more than the table's); a NaN is always
    wrong.
    """
    bound = bound_of(expected, dtype, reduction) + slack
    left, right = found.astype(np.float64), expected.astype(np.float64)
    with np.errstate(invalid="ignore"):
        error = np.abs(left - right)
    wrong = ~((error <= bound) | (left == right))
    if not wrong.any():
        return None
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    number = int if found.dtype.kind in "iub" else float
    return Difference(
        at, number(found[at]), number(expected[at]), bound, int(wrong.sum()), wrong.size
    )


def first_wrong(found: np.ndarray, expected: np.ndarray, dtype: str, reduction: int) -> str | None:
    """None, or which element is out of bounds first, how far, and how many are."""
    if found.shape != expected.shape:
        return f"shape {found.shape}, expected {expected.shape}"
    wrong = difference(found, expected, dtype, reduction)
    return None if wrong is None else str(wrong)
