"""A folder of the compile cache: its secret and its entries. What is damaged is compiled again."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import selfbyoc
from selfbyoc import emit, op

from .specimen import F32, Specimen, compared, files_in

X = np.random.default_rng(1).standard_normal((3, 4)).astype(F32)


def specimens() -> Iterator[Specimen]:
    """The entries of one kernel: its code, and the note that leads to it."""
    with tempfile.TemporaryDirectory() as folder:
        expected = _read(Path(folder))
        assert _hits(Path(folder)) == 1
        yield Specimen(
            "entries of the compile cache", files_in(Path(folder)), _read, compared(expected)
        )


def _built(folder: Path) -> Any:
    weight = np.random.default_rng(0).standard_normal((5, 4)).astype(F32)
    shapes = {"x": (X.shape, F32), "w": (weight.shape, F32)}
    mod = emit(lambda x, w: op.relu(op.dense(x, w)), shapes, {"w": weight})
    return selfbyoc.build(mod, cache=folder)


def _read(folder: Path) -> list[np.ndarray]:
    log = logging.getLogger("selfbyoc")
    level = log.level
    log.setLevel(logging.ERROR)  # it says what it drops
    try:
        return list(_built(folder)(X))
    finally:
        log.setLevel(level)


def _hits(folder: Path) -> int:
    return len(_built(folder).cache.hits)
