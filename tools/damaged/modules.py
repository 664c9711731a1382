"""Modules in TVM's JSON. They have no checksum: a damaged one may be another module. It is then an
error, or is computed; that neither TVM nor the process comes to harm is what is asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import selfbyoc
from selfbyoc import emit, op
from selfbyoc.commands.bench.inputs import made_up
from selfbyoc.commands.model_file import imported, naming
from selfbyoc.tvm import tvm

from .specimen import F32, Specimen

X = np.random.default_rng(1).standard_normal((5, 9)).astype(F32)


def specimens() -> Iterator[Specimen]:
    """One with a weight."""
    weight = np.random.default_rng(0).standard_normal((7, 9)).astype(F32)
    shapes = {"x": (X.shape, F32), "w": (weight.shape, F32)}
    mod = emit(lambda x, w: op.softmax(op.relu(op.dense(x, w))), shapes, {"w": weight})
    data = tvm.ir.save_json(mod).encode()
    yield Specimen("a module in JSON", {"model.json": data}, _read, lambda found, folder: "")


def _read(folder: Path) -> list[np.ndarray]:
    path = folder / "model.json"
    mod = imported(path, ())
    with naming(path):
        library = selfbyoc.build(mod, cache=False)
    return list(library(*given(library)))


def given(library: Any) -> list[np.ndarray]:
    """Inputs of whatever a library wants, the same ones each time."""
    rng = np.random.default_rng(1)
    return [
        made_up(rng, [int(e or 1) for e in shape], np.dtype(dtype), None)
        for _, shape, dtype in library.inputs
    ]
