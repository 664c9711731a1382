"""Converters of other projects: programs that read the ONNX file and write their own."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ....common.optional import extra
from ....errors import InputError
from ....models.onnx.graph import opset_of
from ....models.real_inputs import real_inputs

NEW, OPSET = 13, 17


def ran(command: Sequence[object], folder: Path) -> None:
    """Run a converter in a folder. Raises InputError with the last that it said."""
    texts = [str(word) for word in command]
    done = subprocess.run(texts, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        said = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        last = said[-1] if said else "nothing said"
        raise InputError(f"{Path(texts[0]).name} ended with {done.returncode}: {last[:200]}")


def lifted(path: str, folder: Path) -> Path:
    """A model as opset 17 has it, where it is older than 13: converters read the axis of an older
    Softmax as a newer one's.
    """
    onnx = extra("onnx")
    model = onnx.load(path)
    if opset_of(model) >= NEW:
        return Path(path)
    written = folder / "lifted.onnx"
    onnx.save(onnx.version_converter.convert_version(model, OPSET), str(written))
    return written


def ends(path: str) -> tuple[list[str], list[str]]:
    """The names of a model's inputs and outputs."""
    model = extra("onnx").load(path, load_external_data=False)
    return [v.name for v in real_inputs(model)], [v.name for v in model.graph.output]


def in_32_bits(inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """As runtimes of phones take ids."""
    return {n: a.astype("int32") if a.dtype == np.int64 else a for n, a in inputs.items()}


def as_list(found: Any) -> list[Any]:
    """Of what is one result, or several."""
    return list(found) if isinstance(found, (list, tuple)) else [found]
