"""Readings of damaged files, in processes apart, and how they ended."""

from __future__ import annotations

import gc
import os
import resource
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from selfbyoc.analysis.verify.worker import Worker
from selfbyoc.errors import SelfbyocError

Act = Callable[[], Any]

SECONDS = 120.0  # of one call; a hang beyond it
MEMORY = 1 << 30  # bytes that reading a file of some kilobytes may take
_ADDRESSES = 12 << 30  # bytes: what a wrong size asks for is refused, and the machine lives on


@dataclass(frozen=True)
class Ended:
    """How: `value`, what was computed; `error`, one of ours; `raw`, somebody else's; `crash`,
    `hang`, or `memory`.
    """

    how: str
    text: str = ""
    value: Any = None


def tried(act: Act, seconds: float = SECONDS) -> Ended:
    """What becomes of a call, in a process of its own."""
    return _together([act], seconds)[0]


def tried_each(acts: Sequence[Act], seconds: float = SECONDS) -> list[Ended]:
    """What becomes of calls, one after the other in a process: forking costs more than most of
    them. One that ends the process, or takes too much, is the last there.
    """
    found: list[Ended] = []
    while len(found) < len(acts):
        found += _together(acts[len(found) :], seconds)
    return found


def _together(acts: Sequence[Act], seconds: float) -> list[Ended]:
    """Of the first of them: all those that a process gets to."""
    worker = Worker(partial(_work, acts), seconds)
    found: list[Ended] = []
    while (ended := worker.receive()) is not None:
        found.append(ended)
    words = worker.ending()
    if len(found) == len(acts) or (found and found[-1].how == "memory"):
        return found
    return [*found, Ended("hang" if worker.late else "crash", words)]


def _work(acts: Sequence[Act], send: Callable[[Any], None]) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for handle in (1, 2):
        os.dup2(nowhere, handle)
    gc.disable()
    before = _resident()
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_mapped() + _ADDRESSES, most))
    for act in acts:
        found = _ended(act)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
        if grown > MEMORY:
            send(Ended("memory", f"{grown / 1e9:.1f} GB more"))
            return
        send(found)


def _ended(act: Act) -> Ended:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return Ended("value", value=act())
    except SelfbyocError as err:
        text = str(err)
        if "\n" in text:
            return Ended("raw", f"an error of more than a line: {text[:300]!r}")
        return Ended("error", f"{type(err).__name__}: {text}")
    except MemoryError as err:
        return Ended("memory", f"MemoryError: {err}")
    except BaseException as err:  # whatever it is, it is no error of ours
        return Ended("raw", f"{type(err).__name__}: {str(err)[:300]!r}")


def _memory() -> tuple[int, int]:
    with open("/proc/self/statm", encoding="ascii") as file:
        mapped, resident, *_ = file.read().split()
    page = resource.getpagesize()
    return int(mapped) * page, int(resident) * page


def _mapped() -> int:
    return _memory()[0]


def _resident() -> int:
    return _memory()[1]
