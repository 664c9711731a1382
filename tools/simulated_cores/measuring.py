"""The kernels of built models, timed within the models: weights come from where they come from in a
call, and each kernel's result is read by the next.
"""

from __future__ import annotations

import json
import time
from collections.abc import Container, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import selfbyoc
from selfbyoc.commands.bench.roof import Measurement
from selfbyoc.commands.bench.setting import make_setting
from selfbyoc.runtime.executors.generation import executor
from selfbyoc.runtime.signature import Tensor

RUNS = 20  # of which each call's shortest counts


@dataclass(frozen=True)
class Measured:
    """One model on some threads: microseconds of each call of its virtual machine, in order."""

    calls: tuple[tuple[str, float], ...]

    @property
    def whole(self) -> float:
        """Of the model: of each call the shortest, which is what an undisturbed machine takes."""
        return sum(took for _, took in self.calls)

    def of(self, symbols: Container[str]) -> Iterator[tuple[str, float]]:
        """The calls of these."""
        return ((name, took) for name, took in self.calls if name in symbols)


def measured(path: Path) -> Measured:
    """A library of Relax on as many threads as this process has."""
    library = selfbyoc.load(path)
    machine, rng = executor.session(library.native), np.random.default_rng(0)
    given = [executor.to_tensor(_made_up(rng, tensor)) for tensor in library.inputs]
    calls: list[tuple[str, float]] = []
    since = [0.0]

    def around(_: object, name: str, is_before: bool, *args: object) -> None:
        if is_before:
            since[0] = time.perf_counter()
        else:
            calls.append((name, 1e6 * (time.perf_counter() - since[0])))

    machine.set_instrument(around)
    found = []
    for _ in range(RUNS):
        machine["main"](*given)
        found.append(calls[:])
        calls.clear()
    least = [min(took for _, took in each) for each in zip(*found, strict=True)]
    return Measured(tuple((name, t) for (name, _), t in zip(found[0], least, strict=True)))


def _made_up(rng: np.random.Generator, tensor: Tensor) -> np.ndarray:
    _, shape, dtype = tensor
    sizes = [1 if extent is None else extent for extent in shape]
    if dtype.startswith("float"):
        return rng.standard_normal(sizes).astype(dtype)
    return rng.integers(0, 100, sizes).astype(dtype)


def measure(folder: Path, threads: int, only: Sequence[str]) -> None:
    """Write times.THREADS.json: the roofs, and all libraries of the folder whose names contain one
    of these. Measured again, what was faster counts: other programs only ever slow it down.
    """
    place = folder / f"times.{threads}.json"
    known = json.loads(place.read_text()) if place.exists() else {}
    roof = Measurement(make_setting(threads)).roof()
    known["roof"] = _better(known.get("roof"), asdict(roof))
    for path in sorted(folder.glob("*.so")):
        if any(part in path.name for part in only):
            known[path.stem] = _least(known.get(path.stem), measured(path))
            place.write_text(json.dumps(known))


def _better(known: dict[str, Any] | None, found: dict[str, Any]) -> dict[str, Any]:
    """The higher roofs of two."""
    if known is None:
        return found
    levels = found["bandwidth"]
    return {
        **found,
        "gflops": max(known["gflops"], found["gflops"]),
        "launch": min(known["launch"], found["launch"]),
        "bandwidth": {name: max(known["bandwidth"][name], levels[name]) for name in levels},
    }


def _least(known: dict[str, Any] | None, found: Measured) -> dict[str, Any]:
    """The shorter times of two."""
    if known is None:
        return asdict(found)
    both = zip(known["calls"], found.calls, strict=True)
    least = [(name, min(before, took)) for (_, before), (name, took) in both]
    return {"calls": least}


def times(folder: Path, threads: int) -> tuple[dict[str, Any], dict[str, Measured]]:
    """The roofs and the times that `measure` wrote."""
    found = json.loads((folder / f"times.{threads}.json").read_text())
    roof = found.pop("roof")
    return roof, {name: Measured(tuple(map(tuple, each["calls"]))) for name, each in found.items()}
