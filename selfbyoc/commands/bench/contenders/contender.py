"""What takes part in the benchmark: a name, whether it can be here, and how it is built."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ....common.optional import does_not_serve, is_installed
from ..setting import Setting

Inputs = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Built:
    """A model ready to run: `run` is what is timed, `outputs` reads what it computed last, and
    `file_bytes` says how large its file is, where somebody wants to know that.
    """

    run: Callable[[], Any]
    outputs: Callable[[], Sequence[np.ndarray]]
    note: str = ""
    keeps: Any = None  # memory that `run` reads and that nobody else holds
    file_bytes: Callable[[], int] = int


@dataclass(frozen=True)
class Contender:
    """`build(path of the ONNX model, inputs, setting)` runs in a process of its own.

    is_peer   whether it is somebody else's runtime, which ours is compared with
    needs     packages; where one is missing or does not serve it is skipped, and the report says so
    """

    name: str
    build: Callable[[str, Inputs, Setting], Built]
    is_peer: bool = False
    needs: Sequence[str] = ()
    versions: Sequence[str] = field(default=())  # distributions to name in the report

    def missing(self) -> str | None:
        """Why it cannot take part, or None."""
        lacking = [name for name in self.needs if not is_installed(name)]
        if lacking:
            return f"{', '.join(lacking)} not installed"
        return next(filter(None, map(does_not_serve, self.needs)), None)
