"""Relax: the virtual machine by `tvm_ffi` and TVM's runtime. Where `tvm` is not imported yet, this
does not do it, which takes a second.
"""

from __future__ import annotations

import ctypes
import importlib.util
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...common.without import without_pytorch
from ...errors import InputError
from ..alignment import aligned, is_plain, lies_well, read_only

with without_pytorch():
    import tvm_ffi

if TYPE_CHECKING:
    from ...tvm.types import Executable, Module, NDArray, PackedFunc

from_dlpack, Tensor = tvm_ffi.from_dlpack, tvm_ffi.Tensor
_CPU, _POOLED = 1, 2  # DLPack's kDLCPU; of the machine's allocators
_ENTRY = "vm_load_executable"
_LIBRARIES = ("libtvm_runtime.so", "libtvm_runtime_extra.so")  # the machine; what TVM calls contrib


def load_module(path: str) -> Module:
    """A file as a module, by this very name: TVM's own function follows links. It is unmapped with
    its last function; tvm_ffi keeps every file mapped until the process ends, unless asked (0.1).
    Nothing of ours outlives its file: what a machine returns is of the runtime's allocator, and the
    weights in a file are given to its kernels alone.
    """
    _load_runtime()
    return tvm_ffi.load_module(path, keep_module_alive=False)


def is_runnable(native: Module) -> bool:
    """Whether a file has what `session` asks for."""
    return bool(native.implements_function(_ENTRY))


def _load_runtime() -> None:
    """TVM's runtime, as `import tvm` loads it."""
    if "tvm" in sys.modules:
        return
    spec = importlib.util.find_spec("tvm")
    folder = Path(spec.origin or "").parent / "lib" if spec is not None else Path()
    if not all((folder / name).is_file() for name in _LIBRARIES):  # built by somebody
        import tvm  # noqa: F401

        return
    for name in _LIBRARIES:
        ctypes.CDLL(str(folder / name), ctypes.RTLD_GLOBAL)


def session(native: Executable) -> Module:
    """A virtual machine on the CPU: of a file, or of what was just compiled."""
    if hasattr(native, "jit"):
        from ..relax.linking import linked  # what compiled it is there

        native = linked(native)
    machine = native[_ENTRY]()
    machine["vm_initialization"](_CPU, 0, _POOLED)
    return machine


def calling(
    machine: Module, names: Sequence[str], tensors: Sequence[NDArray]
) -> tuple[Callable[[], object], Callable[[], list[np.ndarray]]]:
    """The machine's normal call on tensors that exist already, and what reads its last result."""
    main = machine["main"]
    last: list[Any] = []

    def call() -> None:
        last[:] = [main(*tensors)]

    return call, lambda: [view_of(tensor).copy() for tensor in _tensors(last[0])]


def _tensors(result: NDArray | Sequence[NDArray]) -> list[NDArray]:
    """What `main` returns: one tensor, or several. Of tensors of PyTorch they are PyTorch's."""
    return list(result) if isinstance(result, tvm_ffi.Array) else [result]


def bound(native: Executable, names: Sequence[str]) -> Callable[[Sequence[NDArray]], list[NDArray]]:
    """`main` of a virtual machine of its own, from tensors to tensors."""
    main = session(native)["main"]
    return lambda tensors: _tensors(_result(main, tensors))


# How many there are, how many there should be, and of what.
_CAST = re.compile(
    r"\((-?\d+) vs\. (-?\d+)\) : ErrorContext\(match_cast, ty=R\.(.*)\)\s+match_cast"
)


def _result(main: PackedFunc, tensors: Sequence[NDArray]) -> NDArray | Sequence[NDArray]:
    """What `main` returns. Of sizes that data decide the virtual machine says by an error of its
    own that they do not fit.
    """
    try:
        return main(*tensors)
    except RuntimeError as err:
        found = _CAST.search(str(err))
        if found is None:
            raise
        size, wanted, ty = found.groups()
        text = f"expected {wanted}, found {size} for {ty.replace('T.', '')}"
        raise InputError(f"a size that is computed: {text}") from err


def bound_arrays(
    native: Executable, names: Sequence[str]
) -> Callable[[Sequence[np.ndarray]], list[np.ndarray]]:
    """`main` of a virtual machine of its own, from arrays to views of its results. What lies well
    is read where it lies, all else is copied.
    """
    call_on_tensors = bound(native, names)
    given = [_Input() for _ in names]

    def call(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        pairs = zip(given, arrays, strict=True)
        return [view_of(r) for r in call_on_tensors([place.of(a) for place, a in pairs])]

    return call


class _Input:
    """Aligned memory of one input; it stays, unless an array of another shape comes."""

    def __init__(self) -> None:
        self.tensor: Any = None
        self.view: np.ndarray | None = None

    def of(self, array: np.ndarray) -> NDArray:
        """A tensor with these values."""
        if lies_well(array):
            return from_dlpack(array)
        if not _is_exchanged(array):
            return to_tensor(array)
        if self.view is None or self.view.shape != array.shape:
            self.view = aligned(array)
            self.tensor = tvm_ffi.from_dlpack(self.view)
        else:
            np.copyto(self.view, array)
        return self.tensor


def _is_exchanged(array: np.ndarray) -> bool:
    """Whether NumPy hands out what it holds: not bfloat16, float8. Of no elements its strides are
    not those that kernels expect.
    """
    return array.size > 0 and is_plain(array.dtype)


def view_of(tensor: NDArray) -> np.ndarray:
    """A tensor as an array, of the same memory; a copy to read where NumPy cannot say what it
    holds.
    """
    try:
        return np.from_dlpack(tensor)
    except RuntimeError:
        return copied(tensor)


def copied(value: NDArray) -> np.ndarray:
    """What knows DLPack as a copy to read."""
    from ...tvm import tvm  # it knows more dtypes than NumPy

    return read_only(tvm.runtime.from_dlpack(value).numpy())


def to_tensor(array: np.ndarray) -> NDArray:
    """A TVM tensor, aligned: TVM 0.27 takes NumPy arrays as they lie in memory, and its kernels
    crash on those that are not 64-byte aligned.
    """
    if _is_exchanged(array):
        return tvm_ffi.from_dlpack(aligned(array))
    from ...tvm import tensor

    return tensor(np.asarray(array, order="C"))


def is_tensor(value: object) -> bool:
    """Whether it is one of TVM's."""
    return isinstance(value, Tensor)
