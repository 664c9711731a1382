"""Who takes part where a size of the model is open: ours and the peers load it once, and are given
inputs of one length after the other. Beside them stands our own build for each length.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any, TypeVar

from ....errors import TargetError
from ....runtime.executors.generation import executor
from ....runtime.library import Library
from ....runtime.sizes import check_sizes
from ..setting import Setting
from .contender import Built, Contender, Inputs
from .runtimes import on_compiled, on_session, ort_session, ov_compiled
from .tvm_builds import counts, names, on_machine, our_library

T = TypeVar("T")

_Loaded = tuple[Library, Any, Callable[[], int]]


def _once(
    load: Callable[[str, Setting], T], on: Callable[[T, Inputs], Built]
) -> Callable[[str, Inputs, Setting], Built]:
    """A build that keeps what it loaded last."""
    kept = lru_cache(maxsize=1)(load)
    return lambda path, inputs, setting: on(kept(path, setting), inputs)


def _load(path: str, setting: Setting) -> _Loaded:
    """With the size of its file, which is written once too."""
    library = our_library(path, setting)
    return library, executor.session(library.native), cache(partial(_file_bytes, library))


def _on_loaded(loaded: _Loaded, inputs: Inputs) -> Built:
    library, machine, file_bytes = loaded
    check_sizes(library.sizes, library.inputs, list(inputs.values()), library.least_sizes)
    built = on_machine(machine, names(library), inputs, counts(library))
    return replace(built, file_bytes=file_bytes)


def _static(path: str, inputs: Inputs, setting: Setting) -> Built:
    library = our_library(path, setting, {name: a.shape for name, a in inputs.items()})
    machine = executor.session(library.native)
    built = on_machine(machine, names(library), inputs, counts(library))
    return replace(built, file_bytes=partial(_file_bytes, library))


def _file_bytes(library: Library) -> int:
    """Of what `export_library` writes; 0 where there is no C++ compiler to link it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.so"
        try:
            library.export_library(path)
        except TargetError:
            return 0
        return path.stat().st_size


OPEN = (
    Contender("selfbyoc", _once(_load, _on_loaded)),
    Contender("static", _static),
    Contender("onnxruntime", _once(ort_session, on_session), True, ("onnxruntime",)),
    Contender("openvino", _once(ov_compiled, on_compiled), True, ("openvino",)),
)
