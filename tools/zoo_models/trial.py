"""One model tried, in a process of its own: made, exported, imported, built, compared."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import selfbyoc
from selfbyoc.errors import FallbackWarning
from selfbyoc.models.from_torch import op_of

from .model import Made, Model
from .record import FAILED, RIGHT, WRONG
from .truth import Truth, judged, truth_of_file, truth_of_module


class Trial:
    """Tells in a file how far it came, so that who started it knows where it died."""

    def __init__(self, model: Model, size: str, path: Path, alone: bool) -> None:
        self._model, self._size, self._path, self._alone = model, size, path, alone
        self._stage = "make"
        self._found: dict[str, Any] = {"processor": {}, "seconds": {}}

    def run(self) -> None:
        """Go as far as the model comes; the last line of the file is what was found."""
        try:
            self._found["outcome"] = self._tried()
        except Exception as err:  # of PyTorch, of any package, of TVM and ours: this is the report
            told = {"outcome": FAILED, "stage": self._stage, "reason": first_line(err)}
            self._found |= told | {"op": op_of(err)}
        self._write(self._found)

    def _write(self, data: Any) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(data) + "\n")

    @contextmanager
    def _at(self, stage: str) -> Iterator[None]:
        self._stage = stage
        self._write({"stage": stage})
        start, used = time.perf_counter(), time.process_time()
        yield
        self._add("seconds", stage, time.perf_counter() - start)
        self._add("processor", stage, time.process_time() - used)

    def _add(self, clock: str, stage: str, seconds: float) -> None:
        """A stage may come several times."""
        self._found[clock][stage] = round(self._found[clock].get(stage, 0.0) + seconds, 3)

    def _tried(self) -> str:
        mod, truth = (self._file if self._model.is_onnx else self._module)()
        library = self._built(mod)
        self._found |= counted(library.report)  # now with the kernels that fell back
        with self._at("run"):
            given = [np.asarray(array) for array in truth.inputs]
            found = library(*given)
        self._stage = "compare"
        told = self._judged(found, truth)
        self._found |= told
        return WRONG if told["reason"] else RIGHT

    def _judged(self, found: list[np.ndarray], truth: Truth) -> dict[str, Any]:
        return judged(found, truth)

    def _module(self) -> tuple[Any, Truth]:
        with self._at("make"):
            made = self._model.made(self._size)
        with self._at("export"):
            program = exported(made)
        with self._at("import"):
            mod = selfbyoc.from_torch(program)
        del program
        with self._at("truth"):
            return mod, truth_of_module(made)

    def _file(self) -> tuple[Any, Truth]:
        with self._at("make"):
            proto = self._model.made(self._size)
        with self._at("import"):
            mod = selfbyoc.from_onnx(proto)
        with self._at("truth"):
            return mod, truth_of_file(proto)

    def _built(self, mod: Any) -> Any:
        """`alone`: without composites, TVM and nothing of ours but the way to it."""
        target = selfbyoc.host_target()
        composites: Sequence[Any] | None = [] if self._alone else None
        with self._at("partition"):
            parted = selfbyoc.partition_for_tefuse(mod, target=target, composites=composites)
        self._found |= counted(selfbyoc.report(parted))
        with self._at("build"), warnings.catch_warnings():
            warnings.simplefilter("ignore", FallbackWarning)
            return selfbyoc.build(parted, target, cache=False)


def exported(made: Made, axes: Any = None) -> Any:
    """The module by torch.export; all shapes as they are, but for these axes."""
    import torch

    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.export.export(made.module, made.inputs, dynamic_shapes=axes)


def counted(report: Any) -> dict[str, Any]:
    """What became kernels and what did not."""
    matched = report.matched
    return {
        "ops": len(report.ops),
        "kernels": len({record.symbol for record in matched}),
        "composites": report.counts,
        "left": report.left,
        "fallbacks": sorted({f"{r.composite}: {r.level_reason}" for r in matched if r.cause}),
    }


def first_line(err: BaseException) -> str:
    """What says most in one line: TVM puts C++'s stack before, PyTorch advice after."""
    lines = [line.strip() for line in str(err).splitlines() if line.strip()]
    told = next((line for line in reversed(lines) if "Error" in line), lines[0] if lines else "")
    kind = type(err).__name__
    return (told if told.startswith(kind) else f"{kind}: {told}")[:300]
