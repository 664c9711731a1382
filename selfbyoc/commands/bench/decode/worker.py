"""The process of one contender: `python -m selfbyoc.commands.bench.decode.worker`, which answers
the request on its standard input, and ends. Who is timed shares it with nobody, nor with PyTorch.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ....errors import one_line
from .configs import write_model
from .contender import Job, module_of

AHEAD = 3  # tokens that are not timed
PAUSE = 0.02  # seconds, after which nobody's threads spin any more


def main() -> None:
    """-> the answer, or what went wrong."""
    request = json.load(sys.stdin)
    answers = os.dup(1)
    os.dup2(2, 1)  # what runtimes print is no answer
    try:
        found = [_ANSWERS[request.pop("what")](**request), None]
    except Exception as err:  # every runtime raises errors of its own, told to who asks
        found = [None, one_line(err)]
    with os.fdopen(answers, "w") as out:
        out.write(json.dumps(found))


def _job(told: dict[str, Any]) -> Job:
    return Job(**told | {"model": Path(told["model"]), "files": Path(told["files"])})


def _written(name: str, job: dict[str, Any]) -> None:
    module_of(name).write(_job(job))


def _timed(name: str, job: dict[str, Any], prompts: list[int], tokens: int) -> dict[str, Any]:
    """Seconds from a file to the first token, of prompts and of each token; peak memory in MB; how
    far the logits are from PyTorch's, and how they correlate; and of further tokens, in turns with
    who only reads, its GB/s and their seconds.
    """
    one, told = module_of(name), _job(job)
    one.imports()
    ids, wanted = np.load(told.model / "ids.npy"), np.load(told.model / "logits.npy")
    at = told.behind
    began = time.perf_counter()
    model = one.load(told)
    first = model.feed(ids[:-1])
    start = time.perf_counter() - began
    found = np.stack([first, model.feed(ids[-1:])])
    error = float(np.abs(found - wanted).max() / np.abs(wanted).max())
    alike = float(np.corrcoef(found.ravel(), wanted.ravel())[0, 1])
    fed = np.random.default_rng(1).integers(0, wanted.shape[1], max(*prompts, at + tokens + AHEAD))
    times = {n: min(_fed(model, fed[:n]) for _ in range(2)) for n in prompts}
    _fed(model, fed[:at])
    each = [_one(model, fed[n : n + 1]) for n in range(at, at + AHEAD + tokens)][AHEAD:]
    lines = Path("/proc/self/status").read_text().splitlines()
    status = dict(line.split(":", 1) for line in lines)
    memory = int(status["VmHWM"].split()[0]) * 1.024e-3
    beside = _in_turns(model, fed[:tokens], told)
    return {"start": start, "prompts": times, "tokens": each, "memory": memory, "error": error,
            "alike": alike, "beside": beside}  # fmt: skip


def _in_turns(model: Any, fed: np.ndarray, job: Job) -> list[tuple[float, float]]:
    """Memory that others use too gives half as much in one second as in the next."""
    from ....tvm import make_target
    from .reading import reader

    read, found = reader(make_target(job.target), job.threads), []
    for n in range(0, len(fed) - 1, 2):
        time.sleep(PAUSE)
        rate = read()
        time.sleep(PAUSE)
        _one(model, fed[n : n + 1])  # its threads wake up
        found.append((rate, _one(model, fed[n + 1 : n + 2])))
    return found


def _fed(model: Any, ids: np.ndarray) -> float:
    model.reset()
    return _one(model, ids)


def _one(model: Any, ids: np.ndarray) -> float:
    began = time.perf_counter()
    model.feed(ids)
    return time.perf_counter() - began


_ANSWERS: dict[str, Callable[..., Any]] = {
    "model": lambda config, folder: write_model(config, Path(folder)),
    "write": _written, "time": _timed,
}  # fmt: skip

if __name__ == "__main__":
    main()
