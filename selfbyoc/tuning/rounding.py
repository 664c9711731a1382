"""What two right kernels may differ by, where a roundoff on the way grows as in an exp."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..analysis.verify.reference import question
from ..analysis.verify.rounding import rounding
from .tasks import Task


def save_allowed(path: Path, task: Task, seeds: Sequence[int]) -> None:
    """Write, for each seed of the inputs and each output, by how much more than the tolerance it
    may be off, or which of its elements (of integers) say nothing. Nothing is written where that
    cannot be told, or where rounding decides all: what differs there cannot be checked, and is
    wrong. It takes NumPy's evaluation of the ops some times over.
    """
    graph, named = task.source.graph, {}
    for k, seed in enumerate(seeds):
        asked = question(graph, {}, "random", seed)
        if asked.values is None or asked.why_not:
            continue
        exact = [asked.values[value] for value in graph.outputs]
        for n, found in enumerate(rounding(graph, asked, exact, seed)):
            if not found.decides:
                named[f"{k}_{n}"] = np.asarray(
                    found.left_out if found.left_out.any() else found.slack
                )
    np.savez(path, **named)  # type: ignore[arg-type]


def allowed(path: str, inputs: int, output: int) -> np.ndarray:
    """What `save_allowed` wrote for one output; 0.0 where it wrote nothing."""
    with np.load(path) as file:
        name = f"{inputs}_{output}"
        return file[name] if name in file.files else np.asarray(0.0)
