"""One file tried, in a process of its own: read, imported, built, compared."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from zoo_models.trial import Trial
from zoo_models.truth import SLACK, Truth, judged, relative, truth_of_file

import selfbyoc
from selfbyoc.commands.bench.reference import OLDEST_OPSET, reference
from selfbyoc.errors import ModelWarning

from .catalogue import Entry
from .model import AS_USED, zoo_model
from .prepared import facts_of, inputs_for, prepared, quantises

STEPS = 5e-2  # of the largest output, where it computes with steps: one more or less moves them all
NOISE = 1e-5  # what two implementations of a dozen layers differ by, before the next step is taken


class FileTrial(Trial):
    """As the zoo tries a model; the inputs are those of the file's entry."""

    def __init__(self, entry: Entry, path: Path, alone: bool) -> None:
        super().__init__(zoo_model(entry), AS_USED, path, alone)
        self._entry, self._quantises = entry, False
        self._proto: Any = None
        self._inputs: Mapping[str, np.ndarray] = {}

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
            self._proto, self._inputs = proto, inputs_for(proto, file, 1)
            other = inputs_for(proto, file, 2)
            noise = NOISE if self._quantises else None
            return mod, truth_of_file(proto, self._inputs, other, noise)

    def _judged(self, found: list[np.ndarray], truth: Truth) -> dict[str, Any]:
        told = judged(found, truth)
        if not told["reason"]:
            return told
        told_of_noise = max(map(relative, truth.theirs, truth.outputs))
        if self._quantises:
            right = told.get("error", np.inf) <= STEPS
            return {**told, "allowed": STEPS, "reason": "" if right else told["reason"]}
        exact = _exact(self._proto, self._inputs)
        if exact is None or [o.shape for o in exact] != [o.shape for o in truth.outputs]:
            return told
        self._found["facts"]["truth"] = "float64"
        told = judged(found, replace(truth, outputs=exact, theirs=truth.outputs))
        allowed = max(told["allowed"], SLACK * told_of_noise) if told["reason"] else 0.0
        right = told["error"] <= allowed
        return {**told, "allowed": allowed, "reason": ""} if right else told


def _exact(proto: Any, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray] | None:
    """By ONNX's own implementation in float64: of small numbers ONNX Runtime's sigmoid and softmax
    keep few bits. None where it cannot run the model.
    """
    opset = min((o.version for o in proto.opset_import if o.domain in ("", "ai.onnx")), default=0)
    if opset < OLDEST_OPSET:
        return None
    try:
        return reference(proto, inputs)
    except Exception:  # plain errors of many kinds, for an op that it lacks
        return None
