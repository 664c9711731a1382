"""What a model computes, by PyTorch in float64, and whether what was found is that."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from selfbyoc.commands.bench.inputs import inputs_of
from selfbyoc.commands.bench.reference import unoptimised
from selfbyoc.common.optional import extra
from selfbyoc.runtime.tolerance import bound_of

from .model import Made

TERMS = 4096  # of not all chains of sums the length is known; 2e-5 of the largest output
SLACK = 4.0  # times the error of the peer itself: what amplifies its rounding amplifies ours
DRAWS = 3  # of rounding; the worst counts
CHAOS = 1e-2  # where the peer itself is off by more, its results prove nothing
LARGE = 1 << 30  # weights from which float64 takes too much memory


@dataclass(frozen=True)
class Truth:
    """`outputs` for `inputs`; `theirs` is what the peer finds in float32."""

    inputs: Sequence[np.ndarray]
    outputs: Sequence[np.ndarray]
    theirs: Sequence[np.ndarray]
    live: float


def truth_of_module(made: Made, chaos: float = CHAOS, draws: int = 0) -> Truth:
    """By PyTorch; of its own float32 the worst, also of so many `draws` of inputs that are off by
    one in the last bit. The module is in float64 afterwards, where it is not too large. Raises
    ValueError where its own float32 is off by more than `chaos`.
    """
    import torch

    with torch.no_grad():
        runs = [_outputs(made.module(*made.inputs))]
        for draw in range(draws):
            near = [torch.from_numpy(_rounded(x.numpy(), None, draw)) for x in made.inputs]
            runs.append(_outputs(made.module(*near)))
        first, *rest = made.inputs
        another = torch.randn_like(first) if first.is_floating_point() else first.roll(1, -1)
        other = _outputs(made.module(another, *rest))
        exact = runs[0]
        if sum(p.numel() for p in made.module.parameters()) < LARGE:
            wide = [x.double() if x.is_floating_point() else x for x in made.inputs]
            exact = _outputs(made.module.double()(*wide))
    if not all(np.isfinite(o).all() for o in exact):
        raise ValueError("PyTorch's own outputs are not finite")
    theirs = [max(of, key=partial(relative, truth=t)) for of, t in _by_output(runs, exact)]
    if (off := max(map(relative, theirs, exact), default=0.0)) > chaos:
        raise ValueError(f"PyTorch itself is off by {off:.1e} in float32: nothing can be compared")
    inputs = [x.numpy() for x in made.inputs]
    return Truth(inputs, exact, theirs, _change(runs[0], other))


Arrays = Mapping[str, np.ndarray]


def truth_of_file(
    proto: Any,
    inputs: Arrays | None = None,
    changed: Arrays | None = None,
    noise: float | None = None,
) -> Truth:
    """By ONNX Runtime with nothing fused, for these inputs; made up where none are given.

    What it finds for inputs that are off by one in the last bit is what is allowed to others. A
    model that computes in steps has more `noise`, and no limit: it jumps.
    """
    inputs = inputs_of(proto) if inputs is None else inputs
    name = next(iter(inputs))
    changed = {**inputs, name: inputs_of(proto, seed=2)[name]} if changed is None else changed
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/model.onnx"
        extra("onnx").save(proto, path)
        exact, other = unoptimised(path, inputs), unoptimised(path, changed)
        runs = [
            unoptimised(path, {name: _rounded(a, noise, draw) for name, a in inputs.items()})
            for draw in range(DRAWS)
        ]
    theirs = [max(of, key=partial(relative, truth=t)) for of, t in _by_output(runs, exact)]
    off = max(map(relative, theirs, exact), default=0.0)
    if noise is None and off > CHAOS:
        raise ValueError(f"the last bit of the inputs changes {off:.1e}: nothing can be compared")
    return Truth(list(inputs.values()), exact, theirs, _change(exact, other))


def _by_output(runs: Sequence[Sequence[Any]], exact: Sequence[Any]) -> Iterator[Any]:
    """Each output of all runs, and what it should be."""
    return zip(zip(*runs, strict=True), exact, strict=True)


def _rounded(array: np.ndarray, noise: float | None, draw: int) -> np.ndarray:
    """Off by one in the last bit, or by this share, up, down or not at all: what a network makes
    of it, it makes of any rounding.
    """
    if array.dtype.kind != "f":
        return array
    steps = np.random.default_rng(draw).choice([-1, 0, 1], array.shape)
    share = np.finfo(array.dtype).eps if noise is None else noise
    return (array * (1 + steps * share)).astype(array.dtype)


def _outputs(found: Any) -> list[np.ndarray]:
    import torch

    leaves = torch.utils._pytree.tree_leaves(found)
    return [leaf.detach().numpy() for leaf in leaves if isinstance(leaf, torch.Tensor)]


def _change(one: Sequence[np.ndarray], other: Sequence[np.ndarray]) -> float:
    pairs = zip(one, other, strict=True)
    return max((relative(a, b) for a, b in pairs), default=0.0)


def relative(found: np.ndarray, truth: np.ndarray) -> float:
    """The largest difference, relative to the largest value."""
    left, right = np.asarray(found, np.float64), np.asarray(truth, np.float64)
    largest = float(np.abs(right).max(initial=0.0))
    return float(np.abs(left - right).max(initial=0.0)) / (largest or 1.0)


def judged(found: Sequence[np.ndarray], truth: Truth) -> dict[str, Any]:
    """Errors, and the reason why it is wrong, if it is."""
    shapes = [[np.shape(a) for a in arrays] for arrays in (found, truth.outputs)]
    if shapes[0] != shapes[1]:
        return {"reason": f"outputs are {shapes[0]}, expected {shapes[1]}", "live": truth.live}
    rows = [_row(*row) for row in zip(found, truth.outputs, truth.theirs, strict=True)]
    worst = max(rows, key=lambda row: row["error"] / (row["allowed"] or 1e-30))
    is_off = not worst["error"] <= worst["allowed"]
    reason = f"off by {worst['error']:.1e}, allowed {worst['allowed']:.1e}" if is_off else ""
    return {**worst, "live": truth.live, "reason": reason}


def _row(found: np.ndarray, truth: np.ndarray, theirs: np.ndarray) -> dict[str, float]:
    dtype = str(theirs.dtype)
    largest = float(np.abs(truth.astype(np.float64)).max(initial=0.0)) or 1.0
    own = relative(theirs, truth)
    allowed = max(bound_of(truth, dtype, TERMS) / largest, SLACK * own)
    return {"error": relative(found, truth), "theirs": own, "allowed": allowed}
