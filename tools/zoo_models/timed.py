"""One model timed: ours and every peer that is here, in turns, as the benchmark does it."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from selfbyoc.commands.bench.measure import Method, Ready, build_all, in_turns
from selfbyoc.commands.bench.process import Process
from selfbyoc.commands.bench.setting import make_setting

from .contenders import MODEL, ONNX, READERS, ZOO
from .model import Model
from .record import Record
from .speed import OURS
from .truth import relative

WORKER = ("-m", "zoo_models.contenders")  # it gets this process's sys.path
NOT_ASKED = "not asked in every run"
OFF = 1e-3  # a peer whose results differ by more from ours, which are right, runs another model


def timed(model: Model, size: str, record: Record, peers: Sequence[str] | None = None) -> Record:
    """The record with milliseconds of those who take part, and why others do not. `peers` None:
    all that are here.
    """
    setting, method = make_setting(), Method()
    skipped = {c.name: why for c in ZOO if (why := c.missing()) is not None}
    if peers is not None:
        skipped |= {c.name: NOT_ASKED for c in ZOO if c.name not in (OURS, *peers)}
    processes = {
        c.name: Process(c.name, setting.threads, WORKER) for c in ZOO if c.name not in skipped
    }
    try:
        with tempfile.TemporaryDirectory(prefix="zoo-") as folder:
            inputs = _given(model, size, Path(folder), method.limit)
            if not (Path(folder) / ONNX).is_file():
                skipped |= dict.fromkeys(READERS, "PyTorch's ONNX exporter fails")
            times, skipped = measured(processes, (folder, inputs, setting), method, skipped)
    finally:
        for process in processes.values():
            process.close()
    return replace(record, times=times, skipped=skipped)


def measured(
    processes: Mapping[str, Process], asked: Any, method: Method, skipped: Mapping[str, str]
) -> tuple[dict[str, float], dict[str, str]]:
    """Milliseconds of those that build what is asked and compute what ours does; and why the others
    do not, beside what is skipped already.
    """
    able = {name: each for name, each in processes.items() if name not in skipped}
    ready, failed = build_all(able, asked, method, lambda text: None)
    skipped = {**skipped, **{name: result.skipped for name, result in failed.items()}}
    skipped |= others_than(ready)
    results, _ = in_turns({n: r for n, r in ready.items() if n not in skipped}, method)
    skipped |= {name: r.skipped for name, r in results.items() if r.skipped}
    return {n: round(r.milliseconds, 4) for n, r in results.items() if not r.skipped}, skipped


def _given(model: Model, size: str, folder: Path, limit: float) -> Mapping[str, np.ndarray]:
    """Put the model's name and its ONNX file into a folder; -> its inputs. An export that fails
    leaves no file, and the peers that read one say so.
    """
    (folder / MODEL).write_text(json.dumps({"key": model.key, "size": size}), encoding="utf-8")
    script = Path(__file__).parents[1] / "zoo.py"
    command = [sys.executable, str(script), "--size", size, "--onnx", model.key]
    done = subprocess.run(
        [*command, "--to", str(folder)], capture_output=True, text=True, timeout=limit, check=False
    )
    path = folder / "inputs.npz"
    if not path.is_file():
        raise RuntimeError(f"{model.key}: no inputs: {done.stderr.strip()[-300:]}")
    with np.load(path) as arrays:
        return dict(arrays)


def write_onnx(model: Model, size: str, folder: Path) -> None:
    """The inputs, then the model as ONNX: in a process of its own, for it takes much memory."""
    from selfbyoc.commands.bench.inputs import inputs_of
    from selfbyoc.common.optional import extra

    if model.is_onnx:
        proto = model.made(size)
        _save(folder, inputs_of(proto))
        extra("onnx").save(proto, str(folder / ONNX))
        return
    import torch

    made = model.made(size)
    names = [f"x{n}" for n in range(len(made.inputs))]
    _save(folder, {n: x.numpy() for n, x in zip(names, made.inputs, strict=True)})
    path = str(folder / ONNX)
    torch.onnx.export(made.module, made.inputs, path, dynamo=True, input_names=names)


def _save(folder: Path, arrays: Mapping[str, Any]) -> None:
    np.savez(folder / "inputs.npz", **arrays)


def others_than(ready: Mapping[str, Ready]) -> dict[str, str]:
    """Peers that compute something else than ours."""
    ours = ready.get(OURS)
    return {
        name: "computes something else"
        for name, one in ready.items()
        if ours and not _agree(one.outputs, ours.outputs)
    }


def _agree(found: Any, ours: Any) -> bool:
    if [np.shape(a) for a in found] != [np.shape(a) for a in ours]:
        return False
    return all(relative(f, o) <= OFF for f, o in zip(found, ours, strict=True))
