"""A built model, the same on both generations: call it, export it, load it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..common.files import expanded, written
from ..common.interrupt import interruptible
from ..common.lazily import lazily
from ..errors import InputError, OutOfMemory
from . import forked
from .exchange import road_to
from .executors.generation import executor
from .native import Stamp, copy_loaded
from .signature import Tensor, filling, ordered, places
from .sizes import IndexPlace, Size, check_indices, check_places, check_sizes

if TYPE_CHECKING:
    from ..analysis.verify.build import Disabled
    from ..analysis.verify.records import Verification
    from ..codegen.cache.kernels import CacheUse
    from ..partition.packings import Packing
    from ..partition.report import Report
    from ..tvm.types import NDArray


@lazily("report", "target")  # of a file, whose note holds them as data
@dataclass
class Library:
    """A built model, to be called with arrays.

    native           what TVM built: an executor factory (Relay) or an Executable (Relax); of a
                     file, what its executor needs
    inputs, outputs  (name, shape, dtype) of each; None in a shape is a dynamic size
    report           what partitioning decided
    verification     after `build(..., verify=True)`: the verdict on every kernel
    disabled         and what was left out for being wrong
    unscheduled      function -> why it runs as serial loops (Relax)
    cache            the kernels that were compiled before, and those that were compiled now
    target           what it was built for; a call on a CPU that lacks some of it: TargetError
    versions         of what built it: name -> version
    weights          how a file of it holds weights of float32
    index_bounds     input -> the least and the largest number that is an index of something
    index_places     the same of indices of axes that are open, and of columns of an input
    sizes            symbol -> its largest size (None: any), and the inputs and axes that have it
    least_sizes      symbol -> its least size, where that is more than 0
    bounded_by       symbol -> who says what its largest size is: a node of the model, "given"
    memory           bytes that an executor keeps for what lies between kernels, at the largest
                     sizes; on Relay the outputs too. None where sizes without a bound decide
    """

    native: Any
    inputs: tuple[Tensor, ...] = ()
    unscheduled: dict[str, str] = field(default_factory=dict)
    report: Report | None = field(default=None, repr=False)
    disabled: tuple[Disabled, ...] = ()
    verification: Verification | None = field(default=None, repr=False)
    cache: CacheUse | None = field(default=None, repr=False)
    target: Any = field(default=None, repr=False)
    outputs: tuple[Tensor, ...] = ()
    versions: dict[str, str] = field(default_factory=dict, repr=False)
    weights: str = "float32"
    index_bounds: dict[str, tuple[int, int]] = field(default_factory=dict, repr=False)
    index_places: tuple[IndexPlace, ...] = field(default=(), repr=False)
    sizes: dict[str, Size] = field(default_factory=dict, repr=False)
    least_sizes: dict[str, int] = field(default_factory=dict, repr=False)
    bounded_by: dict[str, str] = field(default_factory=dict, repr=False)
    memory: int | None = field(default=None, repr=False)
    file: Path | None = None  # that it was loaded from
    _stamp: Stamp | None = field(default=None, repr=False)  # of that file
    _packings: Mapping[str, Packing] = field(default_factory=dict, repr=False)  # of its weights
    _lowered: Any = field(default=None, repr=False)  # what `native` was made of, to be exported
    _executors: threading.local = field(default_factory=threading.local, repr=False)

    def __call__(
        self, *arrays: object, results: object = "numpy", out: object = None, **named: object
    ) -> list[Any]:
        """Run on arrays in the order of the inputs, by name, or in one dict by name; -> the
        outputs in order.

        arrays    of NumPy, PyTorch (gradients are left out), TVM, JAX, or anything with DLPack, of
                  any alignment and strides. What is aligned to 64 bytes and contiguous is read
                  where it lies, all else is copied: TVM's own road crashes on it.
        results   "numpy"; "same": of the kind of the first input; or a function of a DLPack object,
                  such as torch.from_dlpack. They are the caller's own.
        out       arrays to write the outputs into, a list or a dict by name; they are returned

        Several threads may call at once; each gets an executor of its own.

        Raises InputError for a wrong count, name, dtype or shape, or an index of nothing;
        OutOfMemory where there is not as much as the model needs.
        """
        given = self._ordered(arrays, named)
        memory = None if out is None else places(self.outputs, out)
        make = None if results == "numpy" else road_to(results, _first(arrays, named))
        try:
            found = forked.run(self._call(), given)
        except RuntimeError as err:  # TVM hands on what C++ throws
            if "bad_alloc" not in str(err):
                raise
            raise OutOfMemory("the model needs more memory than there is") from err
        if memory is not None:
            filling(found, memory)
            return list(out.values() if isinstance(out, dict) else _as_list(out))
        own = [view.copy() for view in found]  # it may be an input's memory, or a constant's
        return own if make is None else [make(array) for array in own]

    def _call(self) -> Callable[..., list[np.ndarray]]:
        """This thread's executor: arrays to views of its results, until the next call."""
        mine = self._executors
        if not hasattr(mine, "call"):
            self._check_host()
            with interruptible():
                mine.call = forked.run(executor.bound_arrays, self.native, self._names)
        return mine.call

    def session(self) -> Session:
        """An executor of its own, for one thread, from tensors to tensors: nothing is copied."""
        from ..tvm import tvm  # noqa: F401 (its tensors)

        self._check_host()
        return Session(executor.bound(self.native, self._names))

    def prepared(self, *arrays: object, **named: object) -> Callable[[], object]:
        """The call alone, for timing: the inputs are in TVM's memory, nothing is copied out."""
        self._check_host()
        tensors = [executor.to_tensor(a) for a in self._ordered(arrays, named)]
        call = executor.calling(executor.session(self.native), self._names, tensors)[0]
        return lambda: forked.run(call)

    def _check_host(self) -> None:
        """Of what was built here: `load` looks at a file's."""
        if self.file is None and self.target is not None:
            from ..machine import host

            host.check_runs(self.target, "library")

    @property
    def _names(self) -> list[str]:
        return [name for name, _, _ in self.inputs]

    def _ordered(self, arrays: Sequence[object], named: Mapping[str, object]) -> list[np.ndarray]:
        if not self.inputs and not self.outputs:
            raise InputError(
                "the file does not say what its inputs are (another tool wrote it): "
                "load(path, like=library) with a library that has the same ones"
            )
        found = ordered(self.inputs, arrays, named)
        check_sizes(self.sizes, self.inputs, found, self.least_sizes)
        check_indices(self.index_bounds, self.inputs, found)
        check_places(self.index_places, self.inputs, found)
        return found

    def export_library(self, path: str | Path, *, packed: bool = False) -> None:
        """Write one shared library with the kernels, each weight once, and what `load` reads:
        inputs, outputs, target, versions and report. It needs a C++ compiler: TargetError where
        there is none, ToolError where it does not compile. Whole or not at all: InputError where it
        cannot be written.

        packed    also weights that are much larger as their kernels read them, most of all those of
                  Winograd convolutions. Otherwise the file has these as the model does, and code in
                  it packs them as it is loaded, into memory of each process's own.
        """
        from .exporting import export  # it needs TVM's compiler

        if self.file is not None:  # TVM cannot write what it loaded
            with written(expanded(path)) as part:
                copy_loaded(self.file, part, self._stamp)
        else:
            export(self, path, packed)


class Session:
    """One executor of a library, with as little around its kernels as there can be.

    It takes TVM tensors (`session.tensor(array)` makes them) in the order of the model's inputs and
    returns TVM tensors. It copies nothing, and belongs to one thread at a time. Tensors of another
    shape or dtype are an error. On Relay the outputs are the executor's own memory, and the next
    call overwrites them.
    """

    def __init__(self, call: Callable[[Sequence[NDArray]], list[NDArray]]) -> None:
        self._call = call

    def __call__(self, *tensors: NDArray) -> list[NDArray]:
        """Run the model."""
        return forked.run(self._call, tensors)

    @staticmethod
    def tensor(array: np.ndarray) -> NDArray:
        """A copy of an array as an aligned TVM tensor."""
        from ..tvm import tvm  # noqa: F401

        return executor.to_tensor(np.asarray(array))


def check_library(found: object, argument: str) -> None:
    """InputError for what is none."""
    if not isinstance(found, Library):
        raise InputError(f"{argument}: expected a Library, found {type(found).__name__}")


def _first(arrays: Sequence[object], named: Mapping[str, object]) -> object:
    """One of the inputs, as it was given."""
    given = arrays[0] if arrays else named
    return next(iter(given.values()), None) if isinstance(given, dict) else given


def _as_list(out: object) -> Sequence[object]:
    return out if isinstance(out, (list, tuple)) else [out]
