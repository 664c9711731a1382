"""Libraries that `export_library` wrote: of constant and dynamic sizes, and with halved weights."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import selfbyoc
from selfbyoc import emit, op
from selfbyoc.tvm import GENERATION, tir

from .specimen import F32, Specimen, compared

UNKNOWN = tir.Var("n", "int64") if GENERATION == "relax" else tir.Any()
X = np.random.default_rng(1).standard_normal((5, 33)).astype(F32)


def specimens() -> Iterator[Specimen]:
    """One after the other, as building takes some time."""
    rng = np.random.default_rng(0)
    weight, wide = (rng.standard_normal((n, 33)).astype(F32) for n in (17, 64))
    yield _specimen("a library", _module(weight, 5))
    yield _specimen("a library of a dynamic size", _module(weight, UNKNOWN))
    yield _specimen("a library with weights of float16", _module(wide, 5), weights="float16")


def _module(weight: np.ndarray, rows: Any) -> Any:
    shapes = {"x": ((rows, 33), F32), "w": (weight.shape, F32)}
    mod = emit(lambda x, w: op.relu(op.dense(x, w)), shapes, {"w": weight})
    return (
        mod
        if isinstance(rows, int) or GENERATION == "relax"
        else selfbyoc.name_sizes(mod, {"x": {0: "rows"}})
    )


def _specimen(name: str, mod: Any, **options: Any) -> Specimen:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.so"
        selfbyoc.build(mod, cache=False, **options).export_library(path)
        expected = _read(Path(folder))
        return Specimen(name, {path.name: path.read_bytes()}, _read, compared(expected))


def _read(folder: Path) -> list[np.ndarray]:
    """The results, and what the file says of itself."""
    library = selfbyoc.load(folder / "model.so")
    told = [library.inputs, library.outputs, library.versions, library.report, library.sizes]
    return [*library(X), np.array(repr(told))]
