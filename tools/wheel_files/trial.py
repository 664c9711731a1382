"""One file tried, in a process of its own: read, imported, built, compared."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from zoo_models.trial import Trial
from zoo_models.truth import Truth, judged, truth_of_file

import selfbyoc
from selfbyoc.errors import ModelWarning

from .catalogue import Entry
from .model import AS_USED, zoo_model
from .prepared import facts_of, inputs_for, prepared, quantises

STEPS = 5e-2  # of the largest output, where it computes with steps: one more or less moves them all


class FileTrial(Trial):
    """As the zoo tries a model; the inputs are those of the file's entry."""

    def __init__(self, entry: Entry, path: Path, alone: bool) -> None:
        super().__init__(zoo_model(entry), AS_USED, path, alone)
        self._entry, self._quantises = entry, False

    def _file(self) -> tuple[Any, Truth]:
        wheel, file = self._entry
        with self._at("make"), warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelWarning)  # sizes that its entry gives
            proto = prepared(wheel, file)
            self._found["facts"] = facts_of(wheel, file, proto)
            self._quantises = quantises(proto)
        with self._at("import"), warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelWarning)
            mod = selfbyoc.from_onnx(proto)
        with self._at("truth"):
            given = [inputs_for(proto, file, seed) for seed in (1, 2)]
            return mod, truth_of_file(proto, *given)

    def _judged(self, found: list[np.ndarray], truth: Truth) -> dict[str, Any]:
        told = judged(found, truth)
        if self._quantises and told["reason"] and told.get("error", np.inf) <= STEPS:
            return {**told, "allowed": STEPS, "reason": ""}
        return told
