"""A mutant that shows a fault, as files: the model, its inputs, and how to replay it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ....common import structured
from ....common.files import write_text, written
from ....common.optional import extra
from ....errors import InputError, one_line
from ....models.onnx_model import load_onnx
from ....models.real_inputs import keep_constants
from ....tvm import GENERATION
from ..judge import WRONG, Finding
from .mutant import KINDS, Mutant, Range

if TYPE_CHECKING:
    import onnx

_KEY = "selfbyoc.fuzz"  # of the model's metadata


@dataclass(frozen=True)
class _Notes:
    """What a model's metadata say of a mutant."""

    seed: int = 0
    grown: tuple[str, ...] = ()
    target: str = ""
    ranges: dict[str, Range] = field(default_factory=dict)


def write_mutant(folder: Path, finding: Finding, grown: Mutant) -> Path:
    """Write NAME.onnx, NAME.npz (its inputs), NAME.grown.onnx (as it was found) and NAME.txt (what
    is wrong, how it came to be, and how to replay it); -> the first.
    """
    mutant: Mutant = finding.program
    digest = hashlib.sha256(mutant.model).hexdigest()[:8]
    path = folder / f"{finding.kind}_{GENERATION}_{digest}.onnx"
    for to, made in ((path, mutant), (path.with_suffix(".grown.onnx"), grown)):
        with written(to) as part:
            part.write_bytes(_with_notes(made))
    kind = finding.text.split()[0] if finding.kind == WRONG else KINDS[0]
    with written(path.with_suffix(".npz")) as part, part.open("wb") as file:
        np.savez(file, **mutant.inputs(kind))  # type: ignore[arg-type]
    lines = [
        f"{finding.kind} on {GENERATION}: {finding.text}",
        f"from {'; '.join(mutant.grown)}",
        f"python -m selfbyoc fuzz --replay {path.name}",
    ]
    write_text(path.with_suffix(".txt"), "\n".join(lines) + "\n")
    return path


def _with_notes(mutant: Mutant) -> bytes:
    model = extra("onnx").load_from_string(mutant.model)
    data = {"seed": mutant.seed, "grown": mutant.grown, "target": mutant.target,
            "ranges": dict(mutant.ranges)}  # fmt: skip
    extra("onnx").helper.set_model_props(model, {_KEY: json.dumps(data)})
    return bytes(model.SerializeToString())


def read_mutant(path: Path) -> Mutant:
    """The mutant that was written there, or any ONNX model of fixed sizes; with the inputs that lie
    beside it. Raises InputError.
    """
    model = load_onnx(path)
    keep_constants(model, ())
    _check_sizes(model, path)
    props = {entry.key: entry.value for entry in model.metadata_props}
    try:
        notes = structured.read(_Notes, props.get(_KEY, "{}"))
    except ValueError as err:
        raise InputError(f"{path} is no case of the fuzzer: {err}") from err
    found = Mutant(model.SerializeToString(), notes.ranges, notes.seed, notes.grown, notes.target)
    beside = path.with_suffix(".npz")
    return replace(found, given=_arrays(beside, model)) if beside.exists() else found


def _check_sizes(model: onnx.ModelProto, path: Path) -> None:
    for value in model.graph.input:
        tensor = value.type.tensor_type
        if not tensor.HasField("shape") or not all(d.dim_value > 0 for d in tensor.shape.dim):
            text = f"{path} is no case of the fuzzer: input {value.name} has open sizes"
            raise InputError(f"{text}; expected fixed ones")


def _arrays(path: Path, model: onnx.ModelProto) -> dict[str, np.ndarray]:
    try:
        with np.load(path) as held:
            found = {name: held[name] for name in held.files}
    except (OSError, ValueError, EOFError) as err:
        raise InputError(f"{path} holds no inputs that can be read: {one_line(err)}") from err
    wanted = {value.name for value in model.graph.input}
    if set(found) != wanted:
        raise InputError(f"{path} holds {sorted(found)}, expected the inputs {sorted(wanted)}")
    return found
