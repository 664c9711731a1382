"""The process of one contender: `python -m selfbyoc.commands.bench.worker NAME FD`.

It builds what it is told to, and times a window when it is told to; in between it waits on the
pipe, so that only one contender runs at a time.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING

from ...errors import one_line
from ...runtime.timing import Window, window
from . import roof
from .contenders import CONTENDERS, Built, Contender
from .contenders.contender import Inputs
from .reference import unoptimised
from .setting import Setting

if TYPE_CHECKING:
    import numpy as np


SLOW = 0.25  # seconds a call from which on nothing is run only to warm up


def main(
    name: str,
    descriptor: int,
    contenders: Sequence[Contender] = CONTENDERS,
    answers: type[Answers] | None = None,
) -> None:
    """Answer requests until the other end closes."""
    build = next(c.build for c in contenders if c.name == name)
    asked = (answers or Answers)(name, build)
    with Connection(descriptor) as pipe:
        while True:
            try:
                request, args = pipe.recv()
            except EOFError:
                return
            pipe.send(_answered(getattr(asked, request), args))


def _answered(
    function: Callable[..., object], args: tuple[object, ...]
) -> tuple[object, str | None]:
    """The answer, or what went wrong: every runtime raises errors of its own."""
    try:
        return function(*args), None
    except Exception as err:  # every runtime raises errors of its own
        return None, _reason(err)


def _reason(err: Exception) -> str:
    """In one line; OpenVINO says first where in its source it was thrown, and last why."""
    lines = [line for line in str(err).splitlines() if line.strip()]
    if lines and lines[0].startswith("Exception from "):
        return f"{type(err).__name__}: {lines[-1].strip('- ')}"
    return one_line(err)


class Answers:
    """One method for each request."""

    def __init__(self, name: str, build: Callable[..., Built]) -> None:
        self.name, self._build = name, build
        self._built: Built | None = None

    def built(
        self, path: str, inputs: Inputs, setting: Setting
    ) -> tuple[list[np.ndarray], float, float, str, int | None]:
        """-> outputs, seconds of a call, seconds to build, note, bytes of its file."""
        start = time.perf_counter()
        found = self._build(path, inputs, setting)
        ready = time.perf_counter()
        found.run()
        first = time.perf_counter() - ready
        if first < SLOW:
            found.run()  # the first call loads code and starts threads
        self._built = found
        return list(found.outputs()), first, ready - start, found.note, found.file_bytes()

    def windows(self, length: float, count: int, warm: float) -> list[Window]:
        """Timed windows of what was built last, after some untimed calls."""
        assert self._built is not None
        run = self._built.run
        return [window(run, length, warm), *(window(run, length) for _ in range(count - 1))]

    def dropped(self) -> None:
        """Let go of what was built, with its memory and threads."""
        self._built = None

    def truth(self, path: str, inputs: Inputs) -> Sequence[np.ndarray]:
        """-> outputs by someone who optimises nothing."""
        return unoptimised(path, inputs)

    def prepared(self, setting: Setting) -> None:
        """Build what measures the machine."""
        self._machine = roof.Measurement(setting)

    def roof(self) -> object:
        """What this machine can do at most."""
        return self._machine.roof()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
