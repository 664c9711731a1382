"""Relay: the graph executor of a file by TVM's C API alone (`files.py`); by its Python package
(`full.py`) that of what was just built, and the virtual machine.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import files
from .files import GraphFile

if TYPE_CHECKING:
    from ....tvm.types import Executable, Module, NDArray


def _full() -> Any:
    """What needs TVM's Python package."""
    return importlib.import_module(".full", __name__)


def load_module(path: str) -> Module:
    """A file as a module, by this very name."""
    found = None if "tvm" in sys.modules else files.opened(path)
    return _full().load_module(path) if found is None else found


def is_runnable(native: Executable) -> bool:
    """Whether a file has what `session` asks for."""
    return isinstance(native, GraphFile) or bool(_full().is_runnable(native))


def _whole(native: Executable) -> Executable:
    """As TVM as a whole has it."""
    return _full().load_module(native.path) if isinstance(native, GraphFile) else native


def session(native: Executable) -> Any:
    """A graph executor of the library on the CPU, or its virtual machine."""
    return native if isinstance(native, GraphFile) else _full().session(native)


def calling(
    made: Any, names: Sequence[str], tensors: Sequence[NDArray]
) -> tuple[Callable[[], object], Callable[[], list[np.ndarray]]]:
    """The executor's normal call on inputs that are set once, and what reads its last result."""
    if isinstance(made, GraphFile):
        arrays = [t if isinstance(t, np.ndarray) else t.numpy() for t in tensors]
        return files.calling(made, names, arrays)
    return _full().calling(made, names, tensors)


def bound(native: Executable, names: Sequence[str]) -> Callable[[Sequence[NDArray]], list[NDArray]]:
    """An executor of its own, from tensors to tensors: it reads the inputs where they are, and the
    outputs are its own memory, until the next call.
    """
    return _full().bound(_whole(native), names)


def bound_arrays(
    native: Executable, names: Sequence[str]
) -> Callable[[Sequence[np.ndarray]], list[np.ndarray]]:
    """An executor of its own, from arrays to views of its results. What lies well is read where it
    lies, all else is copied.
    """
    if isinstance(native, GraphFile):
        return files.bound_arrays(native, names)
    return _full().bound_arrays(native, names)


def is_tensor(value: object) -> bool:
    """Whether it is one of TVM's."""
    return "tvm" in sys.modules and isinstance(value, _full().Tensor)


def to_tensor(array: np.ndarray) -> NDArray:
    """A TVM tensor, aligned; where TVM as a whole is not there, the array."""
    return _full().to_tensor(array) if "tvm" in sys.modules else array


def view_of(tensor: NDArray) -> np.ndarray:
    """A tensor as an array, of the same memory; a copy to read where that has strides."""
    return _full().view_of(tensor)


def copied(value: NDArray) -> np.ndarray:
    """What knows DLPack as a copy to read."""
    return _full().copied(value)
