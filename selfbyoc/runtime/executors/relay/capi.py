"""TVM 0.17's runtime by its C API (c_runtime_api.h): modules, functions, tensors. Its Python
package imports the compiler.
"""

from __future__ import annotations

import ctypes
import importlib.util
import math
import os
from functools import cache
from pathlib import Path

import numpy as np

_INT, _DEVICE, _TENSOR, _MODULE, _TEXT, _ARRAY = 0, 6, 7, 9, 11, 13  # types of values
_CPU = (1, 0)
_KINDS = {0: "int", 1: "uint", 2: "float"}


class _Value(ctypes.Union):
    _fields_ = (
        ("number", ctypes.c_int64),
        ("pointer", ctypes.c_void_p),
        ("text", ctypes.c_char_p),
        ("device", ctypes.c_int32 * 2),
    )


class DLTensor(ctypes.Structure):
    """DLPack's: memory, where it is, and how it is laid out."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    )


@cache
def library() -> ctypes.CDLL | None:
    """TVM's library; None where it is not found by itself. It is the whole one, which `import tvm`
    loads, too: where its runtime alone was loaded before, that ends the process (a function "is
    already registered", 0.17).
    """
    spec = importlib.util.find_spec("tvm")
    if spec is None or not spec.origin:
        return None
    package = Path(spec.origin).parent
    given = os.environ.get("TVM_LIBRARY_PATH")
    folders = [*([Path(given)] if given else []), package]
    folders += [package.parent.parent / name for name in ("build", "lib")]
    found = (folder / "libtvm.so" for folder in folders)
    path = next(filter(Path.is_file, found), None)
    if path is None:
        return None
    opened = ctypes.CDLL(str(path))
    opened.TVMGetLastError.restype = ctypes.c_char_p
    return opened


def _called(name: str, *arguments: object) -> None:
    """One of the API's functions. RuntimeError with what TVM says, where it fails."""
    runtime = library()
    if runtime is None:
        raise RuntimeError("TVM's library is not found")
    if getattr(runtime, name)(*arguments):
        raise RuntimeError(runtime.TVMGetLastError().decode(errors="replace"))


class _Owned:
    """What TVM hands out, and takes back."""

    _free = ""

    def __init__(self, handle: int) -> None:
        self.handle = ctypes.c_void_p(handle)
        self._release = getattr(library(), self._free)  # also when Python ends

    def __del__(self) -> None:
        self._release(self.handle)


class Function(_Owned):
    """A packed function."""

    _free = "TVMFuncFree"

    def __call__(self, *arguments: int | str | DLTensor | tuple[int, int]) -> Module | Array | int:
        """Call it with numbers, texts, tensors, devices."""
        count = len(arguments)
        values, types = (_Value * max(1, count))(), (ctypes.c_int * max(1, count))()
        kept = [_put(values[n], given) for n, given in enumerate(arguments)]
        types[:count] = [kind for kind, _ in kept]
        result, kind = _Value(), ctypes.c_int()
        into = ctypes.byref(result), ctypes.byref(kind)
        _called("TVMFuncCall", self.handle, values, types, count, *into)
        if kind.value == _MODULE:
            return Module(result.pointer)
        return Array(result.pointer) if kind.value == _ARRAY else int(result.number or 0)


def _put(value: _Value, given: int | str | DLTensor | tuple[int, int]) -> tuple[int, object]:
    """Write an argument; its type, and what must live until the call is over."""
    if isinstance(given, DLTensor):
        value.pointer = ctypes.addressof(given)
        return _TENSOR, given
    if isinstance(given, str):
        value.text = text = given.encode()
        return _TEXT, text
    if isinstance(given, tuple):
        value.device[:] = given
        return _DEVICE, None
    value.number = given
    return _INT, None


class Module(_Owned):
    """A module of the runtime."""

    _free = "TVMModFree"

    def __getitem__(self, name: str) -> Function:
        """A function of it. Raises KeyError where it has none of this name."""
        found = ctypes.c_void_p()
        _called("TVMModGetFunction", self.handle, name.encode(), 0, ctypes.byref(found))
        if not found.value:
            raise KeyError(name)
        return Function(found.value)


class Array(_Owned):
    """A tensor of the runtime's."""

    _free = "TVMArrayFree"

    @property
    def tensor(self) -> DLTensor:
        """Its memory and layout."""
        return ctypes.cast(self.handle, ctypes.POINTER(DLTensor)).contents

    @property
    def address(self) -> int:
        """Where its first element is."""
        return int(self.tensor.data or 0) + int(self.tensor.offset)

    def view(self) -> np.ndarray:
        """An array on the same memory, which keeps it alive. Raises TypeError for a dtype that is
        not NumPy's own.
        """
        tensor = self.tensor
        shape, dtype = tensor.shape[: tensor.ndim], dtype_of(tensor)
        memory = (ctypes.c_byte * (math.prod(shape) * dtype.itemsize)).from_address(self.address)
        memory.owner = self
        return np.ndarray(shape, dtype, buffer=memory)


def dtype_of(tensor: DLTensor) -> np.dtype:
    """NumPy's, or TypeError."""
    if (tensor.code, tensor.bits, tensor.lanes) == (1, 1, 1):
        return np.dtype(bool)
    if tensor.code not in _KINDS or tensor.lanes != 1:
        raise TypeError(f"DLPack's type {tensor.code} of {tensor.bits} bits")
    return np.dtype(f"{_KINDS[tensor.code]}{tensor.bits}")


def tensor_of(array: np.ndarray, like: DLTensor) -> tuple[DLTensor, object]:
    """An array's memory as a tensor of the type of another; and what it needs alive."""
    shape = (ctypes.c_int64 * max(1, array.ndim))(*array.shape)
    made = DLTensor(
        array.ctypes.data, like.device, array.ndim, like.code, like.bits, like.lanes,
        ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64)), None, 0,
    )  # fmt: skip
    return made, (array, shape)


def opened(path: str) -> Module:
    """A shared library as a module, by this very name. RuntimeError where it cannot be loaded."""
    found = ctypes.c_void_p()
    _called("TVMModLoadFromFile", path.encode(), b"so", ctypes.byref(found))
    return Module(found.value or 0)


def on_cpu(module: Module) -> Module:
    """The executor that a factory makes."""
    made = module["default"](_CPU)
    assert isinstance(made, Module)
    return made
