"""Records of tuning: decisions of a composite's own schedule, and traces of MetaSchedule's."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import selfbyoc
from selfbyoc import emit, op

from .specimen import F32, Specimen, compared, files_in

X = np.random.default_rng(1).standard_normal((6, 8)).astype(F32)
WEIGHT = np.random.default_rng(0).standard_normal((16, 8)).astype(F32)
SLACK = 1e-3  # other decisions sum in another order


def specimens() -> Iterator[Specimen]:
    """Those of a short search in each space."""
    expected = [np.maximum(X @ WEIGHT.T, 0)]
    for space, text in (("own", "decisions"), ("metaschedule", "traces")):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            selfbyoc.tune(_module(), None, 3, folder, params=PARAMS, space=space, cost_model="none")
            assert (folder / "records.jsonl").exists()
            yield Specimen(
                f"records of tuning, {text}",
                {"records.jsonl": files_in(folder)["records.jsonl"]},
                _read,
                compared(expected, SLACK),
            )


PARAMS = {"w": WEIGHT}


def _module() -> Any:
    shapes = {"x": (X.shape, F32), "w": (WEIGHT.shape, F32)}
    return emit(lambda x, w: op.relu(op.dense(x, w)), shapes)


def _read(folder: Path) -> list[np.ndarray]:
    with selfbyoc.apply_records(folder):
        return list(selfbyoc.build(_module(), params=PARAMS, cache=False)(X))
