"""Whether what a contender computed is right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ...runtime.tolerance import bound_of
from .process import Failed, Process
from .records import OURS, Result
from .reference import reference
from .workload import Workload

if TYPE_CHECKING:
    import onnx

# At least so many terms are taken to be summed: of a model that somebody brings not all chains of
# sums are known (recurrent layers, einsum). It allows 2e-5 of the largest output.
TERMS = 4096

# One step more or less of a scale is no error, and what it does to the outputs nobody knows.
_QUANTISING = ("QuantizeLinear", "DynamicQuantizeLinear", "QLinearConv", "QLinearMatMul")


@dataclass(frozen=True)
class Expectation:
    """What is right, by rounding of so many terms; `unknown` says why that cannot be told."""

    outputs: Sequence[np.ndarray] | None = None
    terms: int = 1
    unknown: str = ""


def expectation(
    workload: Workload,
    model: onnx.ModelProto,
    path: str,
    inputs: Mapping[str, np.ndarray],
    terms: int,
    limit: float,
) -> Expectation:
    """What the workload computes, where its truth is not one of the contenders."""
    if workload.truth == "reference":
        return Expectation(reference(model, inputs), terms)
    if workload.truth != "unoptimised":
        return Expectation(None, terms)
    process = Process(OURS, 1)  # one of its own: a foreign model may crash it
    try:
        outputs = process.ask("truth", path, dict(inputs), limit=limit)
    except Failed as err:
        return Expectation(unknown=f"not checked: {err}")
    finally:
        process.close()
    quantised = any(node.op_type in _QUANTISING for node in model.graph.node)
    return _usable(outputs, max(TERMS, terms), quantised)


def _usable(outputs: Sequence[np.ndarray], terms: int, quantised: bool) -> Expectation:
    """Without what no bound can be told for."""
    if not all(isinstance(o, np.ndarray) and o.dtype.kind in "fiub" for o in outputs):
        return Expectation(unknown="not checked: not all outputs are tensors of numbers")
    if not all(np.isfinite(o).all() for o in outputs):
        return Expectation(unknown="not checked: outputs for random inputs are not finite")
    if quantised:
        return Expectation(outputs, 0, "errors are not judged: it quantises, steps may differ")
    return Expectation(outputs, terms)


def checked(result: Result, found: Sequence[np.ndarray], expected: Expectation) -> Result:
    """With the errors; unchanged where nothing is known to compare with."""
    truth, terms = expected.outputs, expected.terms
    if truth is None or result.skipped:
        return result
    if [np.shape(f) for f in found] != [t.shape for t in truth]:
        return replace(result, wrong=True)
    pairs = [(np.asarray(f), t) for f, t in zip(found, truth, strict=True)]
    error = max(_largest(f.astype(np.float64) - t.astype(np.float64)) for f, t in pairs)
    largest = max(_largest(t.astype(np.float64)) for t in truth)
    wrong = any(_is_off(f, t, terms) for f, t in pairs)
    return replace(result, error=error, relative=error / largest if largest else error, wrong=wrong)


def _is_off(found: np.ndarray, truth: np.ndarray, terms: int) -> bool:
    """Each output by its own size: the boxes of a detector are hundreds, its scores below one."""
    error = _largest(found.astype(np.float64) - truth.astype(np.float64))
    bound = bound_of(truth, str(found.dtype), terms) if terms else np.inf
    return not error <= bound


def _largest(array: np.ndarray) -> float:
    """Of the magnitudes; a NaN where there is one."""
    return float(np.abs(array).max(initial=0.0))
