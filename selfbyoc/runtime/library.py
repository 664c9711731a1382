"""A built model, the same on both generations: call it, export it, load it."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import host
from .._tvm import tvm
from ..errors import InputError, one_line
from ..files import written
from ..interrupt import interruptible
from . import forked
from .generation import runtime
from .system_compiler import check_compiler
from .target_note import read_note, write_note

if TYPE_CHECKING:
    from ..analysis.verify.build import Disabled
    from ..analysis.verify.records import Verification
    from ..cache.kernels import CacheUse
    from ..partition.report import Report


@dataclass
class Library:
    """A built model. `native` is what TVM built: an executor factory (Relay) or an Executable
    (Relax). `report` is what partitioning decided. After `build(..., verify=True)`, `verification`
    holds the verdict on every kernel in it, and `disabled` what was left out for being wrong.
    `cache` lists the kernels that were compiled before, and those that were compiled now. `target`
    is what it was built for; where the host lacks some of that, a call raises TargetError.
    """

    native: Any
    inputs: tuple[tuple[str, tuple[int | None, ...], str], ...] = ()
    unscheduled: dict[str, str] = field(default_factory=dict)
    report: Report | None = field(default=None, repr=False)
    disabled: tuple[Disabled, ...] = ()
    verification: Verification | None = field(default=None, repr=False)
    cache: CacheUse | None = field(default=None, repr=False)
    target: Any = field(default=None, repr=False)
    _executors: threading.local = field(default_factory=threading.local, repr=False)

    def __call__(self, *arrays: np.ndarray, **named: np.ndarray) -> list[np.ndarray]:
        """Run on NumPy arrays in the order of the parameters, or by name; -> the outputs.

        Arrays may have any alignment and strides (they are copied, as are the outputs): TVM's own
        road crashes on ones that are not 64-byte aligned. Several threads may call at once; each
        gets an executor of its own.
        """
        given = self._ordered(arrays, named)
        mine = self._executors
        if not hasattr(mine, "call"):
            self._check_host()
            with interruptible():
                mine.call = forked.run(runtime.bound_arrays, self.native, self._names)
        return forked.run(mine.call, given)

    def session(self) -> Session:
        """An executor of its own, for one thread, from tensors to tensors: nothing is copied."""
        self._check_host()
        return Session(runtime.bound(self.native, self._names))

    def prepared(self, *arrays: np.ndarray, **named: np.ndarray) -> Callable[[], object]:
        """The call alone, for timing: the inputs are in TVM's memory, nothing is copied out."""
        self._check_host()
        tensors = [runtime.to_tensor(a) for a in self._ordered(arrays, named)]
        call = runtime.calling(runtime.session(self.native), self._names, tensors)[0]
        return lambda: forked.run(call)

    def _check_host(self) -> None:
        if self.target is not None:
            host.check_runs(self.target, "library")

    @property
    def _names(self) -> list[str]:
        return [name for name, _, _ in self.inputs]

    def _ordered(self, arrays: Sequence[Any], named: dict[str, Any]) -> list[np.ndarray]:
        if not named and len(arrays) == len(self.inputs):
            pairs = zip(arrays, self.inputs, strict=True)
            return [_checked(array, *wanted) for array, wanted in pairs]
        names = self._names
        unknown = sorted(set(named) - set(names))
        if unknown:
            raise InputError(f"{unknown} are no inputs of the model; expected {names}")
        given = {**dict(zip(names, arrays, strict=False)), **named}
        missing = [name for name in names if name not in given]
        if missing or len(arrays) + len(named) != len(names):
            raise InputError(
                f"expected the inputs {names}, found {len(arrays)} arrays and {sorted(named)}"
            )
        return [_checked(given[name], name, shape, dtype) for name, shape, dtype in self.inputs]

    def export_library(self, path: str | Path) -> None:
        """Write one shared library with the kernels, each weight once, and the target, which `load`
        reads; needs a C++ compiler (TargetError where there is none). Whole or not at all:
        InputError where it cannot be written.
        """
        check_compiler("export_library")
        with written(Path(path)) as part, tempfile.TemporaryDirectory() as folder:
            note = [] if self.target is None else [write_note(Path(folder), self.target)]
            try:
                self.native.export_library(str(part), addons=note)
            except RuntimeError as err:  # so TVM hands on what the linker said
                raise InputError(f"{path} cannot be written: {_said(err)}") from err


class Session:
    """One executor of a library, with as little around its kernels as there can be.

    It takes TVM tensors (`session.tensor(array)` makes them) in the order of the model's inputs and
    returns TVM tensors. It copies nothing, and belongs to one thread at a time. Tensors of another
    shape or dtype are an error. On Relay the outputs are the executor's own memory, and the next
    call overwrites them.
    """

    def __init__(self, call: Callable[[Sequence[Any]], list[Any]]) -> None:
        self._call = call

    def __call__(self, *tensors: Any) -> list[Any]:
        """Run the model."""
        return forked.run(self._call, tensors)

    @staticmethod
    def tensor(array: Any) -> Any:
        """A copy of an array as an aligned TVM tensor."""
        return runtime.to_tensor(np.asarray(array))


def _checked(array: Any, name: str, shape: tuple[int | None, ...], dtype: str) -> np.ndarray:
    found = np.asarray(array)
    if found.shape == shape and found.dtype == dtype:
        return found
    fits = len(shape) == found.ndim and all(
        e in (None, f) for e, f in zip(shape, found.shape, strict=True)
    )
    if not fits or str(found.dtype) != dtype:
        raise InputError(
            f"input {name!r}: expected {dtype}{list(shape)}, found {found.dtype}{list(found.shape)}"
        )
    return found


def _said(err: RuntimeError) -> str:
    """The linker's own line."""
    lines = [line for line in str(err).splitlines() if line.strip()]
    return next((line for line in lines if "ld:" in line or ": error:" in line), one_line(err))


def load(path: str | Path, like: Library | None = None) -> Library:
    """A library that `export_library` wrote; `like` gives the names and types of its inputs.

    Raises TargetError if it was built for another CPU than this machine's, before any of its code
    is loaded.
    """
    target = read_note(Path(path))
    if target is not None:
        host.check_runs(target, str(path))
    native = tvm.runtime.load_module(str(path))
    return Library(native, like.inputs if like else (), target=target)


def weights_once(native: Any) -> Any:
    """What relay.build returned, without TVM 0.17's second copy of every weight; `build` does it.

    An Executable of Relax is returned as it is: it holds each weight once.
    """
    return runtime.weights_once(native)
