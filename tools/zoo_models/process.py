"""Trials from outside: a process each, with a limit of time and memory, and what its end means."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .model import Model
from .record import (
    CRASH,
    EXPORT,
    FAILED,
    IMPORTER,
    LIMITS,
    MAKER,
    MEMORY,
    OURS,
    RIGHT,
    STAGES,
    TIMEOUT,
    TVM,
    WRONG,
    Record,
)  # fmt: skip

_BEFORE_US = {"make": MAKER, "export": EXPORT, "import": IMPORTER, "truth": MAKER}
SCRIPT = Path(__file__).resolve().parents[1] / "zoo.py"


@dataclass(frozen=True)
class Limits:
    """Of one trial."""

    seconds: float = 600.0
    gigabytes: float = 12.0


def tried(
    model: Model,
    size: str,
    limits: Limits,
    script: Path | None = None,
    options: Sequence[str] = (),
) -> Record:
    """What a trial found, and whose fault a failure is: if TVM alone fails at the same stage, or is
    as wrong, it is not ours. The script tries the model that `--trial KEY` names, with these
    options.
    """
    command = [*_command(model, size, limits, SCRIPT if script is None else script), *options]
    found = _one(command, limits)
    fault = _fault(found)
    if fault == OURS:
        alone = _one([*command, "--alone"], limits)
        fault = TVM if _is_same(found, alone) else OURS
    return Record(model.key, size, **{**found, "fault": fault})


def _command(model: Model, size: str, limits: Limits, script: Path) -> list[str]:
    told = ["--size", size, "--gigabytes", str(limits.gigabytes)]
    return [sys.executable, str(script), *told, "--trial", model.key]


def _fault(found: dict[str, Any]) -> str:
    if found["outcome"] == RIGHT:
        return ""
    if found.get("reason", "").startswith(MEMORY):
        return LIMITS
    return _BEFORE_US.get(found.get("stage", ""), OURS)


def _is_same(found: dict[str, Any], alone: dict[str, Any]) -> bool:
    """Whether TVM alone fails no later, or is wrong as well."""
    if alone["outcome"] == RIGHT:
        return False
    if found["outcome"] == WRONG or alone["outcome"] == WRONG:
        return found["outcome"] == alone["outcome"]
    return STAGES.index(alone["stage"]) <= STAGES.index(found["stage"])


def _one(command: Sequence[str], limits: Limits) -> dict[str, Any]:
    """Run a trial; -> the fields of its record. One that cannot tell of its end is told of."""
    with tempfile.TemporaryDirectory(prefix="zoo-") as folder:
        path, said = Path(folder) / "trial.jsonl", Path(folder) / "said"
        with said.open("wb") as out:
            code = _run([*command, "--to", str(path)], out, limits)
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        told = [json.loads(line) for line in lines]
        if told and "outcome" in told[-1]:
            found = told[-1]
            if "MemoryError" in found.get("reason", "") or "alloc" in found.get("reason", ""):
                found["reason"] = f"{MEMORY}: more than {limits.gigabytes:g} GB"
            return found
        stage = told[-1]["stage"] if told else STAGES[0]
        reason = _epitaph(code, said.read_text(errors="replace"), limits)
    return {"outcome": FAILED, "stage": stage, "reason": reason}


def _run(command: Sequence[str], out: Any, limits: Limits) -> int | None:
    """Its exit status; None when it took too long. It and its children end."""
    child = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
    )  # fmt: skip
    try:
        return child.wait(limits.seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()


def limit_memory(gigabytes: float) -> None:
    """Of this process, from now on. What it only maps, as libraries and files, does not count."""
    size = int(gigabytes * 2**30)
    resource.setrlimit(resource.RLIMIT_DATA, (size, size))


def _epitaph(code: int | None, said: str, limits: Limits) -> str:
    if code is None:
        return f"{TIMEOUT}: more than {limits.seconds:g} s"
    if "MemoryError" in said or "bad_alloc" in said or code == -signal.SIGKILL:
        return f"{MEMORY}: more than {limits.gigabytes:g} GB"
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    how = signal.Signals(-code).name if code < 0 else f"status {code}"
    return f"{CRASH}: {how}" + (f", {lines[-1][:200]}" if lines else "")
