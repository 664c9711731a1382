"""Arrays of other libraries by DLPack: in without a copy, and results as their kind."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError, one_line
from .alignment import is_plain
from .executors.generation import executor

if TYPE_CHECKING:
    from ..tvm.types import NDArray

_CPU = 1  # DLPack's kDLCPU


def as_array(value: Any, what: str) -> np.ndarray:
    """A value of NumPy, PyTorch (detached), TVM, JAX or any library that knows DLPack, as an array
    on the same memory; of a list or a number, a new one.
    """
    if isinstance(value, np.ndarray):
        return value
    if hasattr(value, "__dlpack__"):
        value = value.detach() if hasattr(value, "detach") else value
        _check_device(value, what)
        # NumPy's DLPack knows no bfloat16: TVM copies it.
        shared = executor.view_of if executor.is_tensor(value) else np.from_dlpack
        roads: tuple[Callable[[Any], Any], ...] = (shared, executor.copied, np.asarray)
    else:
        roads = (np.asarray,)
    why: Exception | None = None
    for road in roads:
        try:
            found: np.ndarray = road(value)
        except Exception as err:  # each library has errors of its own for what it does not hand out
            why = err
            continue
        if found.dtype != object:
            return found
    dtype = f" of {value.dtype}" if hasattr(value, "dtype") else ""
    said = f": {one_line(why)}" if why is not None else ""
    text = f"{what}: expected an array of numbers, found {type(value).__name__}{dtype}{said}"
    raise InputError(text) from why


def _check_device(value: Any, what: str) -> None:
    try:
        kind, number = value.__dlpack_device__()
    except Exception:  # PyTorch's, for the device "meta"
        kind, number = 0, 0
    if int(kind) != _CPU:
        where = getattr(value, "device", f"DLPack's device {int(kind)}:{number}")
        raise InputError(f"{what}: expected an array in the CPU's memory, found one on {where}")


def road_to(results: object, given: Any) -> Callable[[np.ndarray], object] | None:
    """What makes results of the kind asked for; None where that is NumPy's.

    results   "numpy", "same" (the kind of what was given), or a function of a DLPack object
    """
    if results == "numpy" or (results == "same" and not hasattr(given, "__dlpack__")):
        return None
    if callable(results):
        return lambda array: results(_exchanged(array))
    if results != "same":
        raise InputError(
            f"results: expected 'numpy', 'same' or a function such as torch.from_dlpack, found "
            f"{results!r:.60}"
        )
    if isinstance(given, np.ndarray):
        return None
    make = _maker(given)
    return lambda array: make(_exchanged(array))


def _maker(given: Any) -> Callable[[NDArray], object]:
    """The `from_dlpack` of a value's library."""
    package = type(given).__module__.partition(".")[0]
    if package in ("tvm", "tvm_ffi"):
        return executor.to_tensor  # aligned, as its kernels want it
    space = given.__array_namespace__() if hasattr(given, "__array_namespace__") else None
    make = getattr(space or sys.modules.get(package), "from_dlpack", None)
    if make is None:
        raise InputError(
            f"results: {package} has no from_dlpack; give a function that makes its arrays"
        )
    return make


def _exchanged(array: np.ndarray) -> np.ndarray:
    """What hands an array on: NumPy itself refuses bfloat16."""
    return array if is_plain(array.dtype) else executor.to_tensor(array)
