"""What a library takes and returns: names, shapes, dtypes; and whether what is given fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import InputError, did_you_mean
from ..graph import type_text
from .exchange import as_array

# Name, shape (None: dynamic), dtype. Plain data: it is written into the exported file.
Tensor = tuple[str, tuple[int | None, ...], str]
_MOST = 8  # inputs that an error lists


def ordered(
    inputs: Sequence[Tensor], given: Sequence[Any], named: Mapping[str, object]
) -> list[np.ndarray]:
    """What is given by position, by name or in one dict, as arrays in the order of the inputs."""
    if len(given) == 1 and isinstance(given[0], Mapping):
        for name in named:
            if name in given[0]:
                raise InputError(f"input {name!r} is given twice: in the dict and by name")
        given, named = [], {**given[0], **named}
    if not named and len(given) == len(inputs):
        pairs = zip(given, inputs, strict=True)
        return [checked(value, wanted) for value, wanted in pairs]
    names = [name for name, _, _ in inputs]
    _check_names(names, named, names[: len(given)])
    if len(given) + len(named) > len(inputs) or (not named and len(given) != len(inputs)):
        raise InputError(_count(inputs, len(given) + len(named)))
    every = {**dict(zip(names, given, strict=False)), **named}
    missing = [type_of(tensor) for tensor in inputs if tensor[0] not in every]
    if missing:
        raise InputError(f"missing: {_listed(missing)}; given: {_listed(list(every)) or 'nothing'}")
    return [checked(every[wanted[0]], wanted) for wanted in inputs]


def type_of(tensor: Tensor) -> str:
    """`x: float32[1, 3]`."""
    name, shape, dtype = tensor
    return f"{name}: {type_text(shape, dtype)}"


def _count(inputs: Sequence[Tensor], found: int, kind: str = "input") -> str:
    many = "" if len(inputs) == 1 else "s"
    listed = f" ({_listed([type_of(t) for t in inputs])})" if inputs else ""
    return f"expected {len(inputs)} {kind}{many}{listed}, found {found}"


def _listed(texts: Sequence[str]) -> str:
    more = [f"and {len(texts) - _MOST} more"] if len(texts) > _MOST else []
    return ", ".join([*texts[:_MOST], *more])


def _check_names(
    names: Sequence[str], named: Mapping[str, object], placed: Sequence[str], kind: str = "input"
) -> None:
    for name in named:
        if name not in names:
            near = did_you_mean(str(name), names)
            raise InputError(f"no {kind} {name!r}; expected {_listed(list(names))}{near}")
        if name in placed:
            raise InputError(f"{kind} {name!r} is given twice: by position and by name")


def checked(value: object, wanted: Tensor, kind: str = "input") -> np.ndarray:
    """A value as an array of this type, or an InputError."""
    name, shape, dtype = wanted
    found = value if type(value) is np.ndarray else as_array(value, f"{kind} {name!r}")
    if found.shape == shape and found.dtype == dtype:
        return found
    fits = len(shape) == found.ndim and all(
        e in (None, f) for e, f in zip(shape, found.shape, strict=True)
    )
    if not fits or str(found.dtype) != dtype:
        given = type_text(found.shape, str(found.dtype))
        raise InputError(f"{kind} {name!r}: expected {type_text(shape, dtype)}, found {given}")
    return found


def places(outputs: Sequence[Tensor], out: object) -> list[np.ndarray]:
    """The memory of `out`, an array, a list of them or a dict by name, in the order of the outputs;
    each is of the type of its output and can be written.
    """
    names = [name for name, _, _ in outputs]
    if isinstance(out, Mapping):
        _check_names(names, out, (), "output")
        out = [out[name] for name in names if name in out]
    elif not isinstance(out, (list, tuple)):
        out = [out]
    if len(out) != len(outputs):
        raise InputError(f"out: {_count(outputs, len(out), 'output')}")
    found = [checked(value, wanted, "out") for value, wanted in zip(out, outputs, strict=True)]
    for name, array, value in zip(names, found, out, strict=True):
        is_shared = value is array or hasattr(value, "__dlpack__")
        if not is_shared or not array.flags.writeable:
            raise InputError(f"out {name!r}: expected memory to write into, found {_kind(value)}")
    _check_apart(names, found)
    return found


def _check_apart(names: Sequence[str], memory: Sequence[np.ndarray]) -> None:
    """InputError where an element would be written twice."""
    for n, (name, array) in enumerate(zip(names, memory, strict=True)):
        if not array.flags.forc and _overlaps_itself(array):
            raise InputError(f"out {name!r}: expected an array whose elements lie apart")
        for other, earlier in zip(names[:n], memory[:n], strict=True):
            if np.shares_memory(earlier, array):
                raise InputError(f"out {name!r}: expected memory of its own, found that of {other}")


def _overlaps_itself(array: np.ndarray) -> bool:
    """Whether two elements may lie in the same place, as those of a broadcast array do."""
    reach = array.itemsize  # bytes from the first to the last, along the axes so far
    for stride, extent in sorted(
        (abs(s), e) for s, e in zip(array.strides, array.shape, strict=True)
    ):
        if extent > 1:
            if stride < reach:
                return True
            reach += stride * (extent - 1)
    return False


def _kind(value: np.ndarray) -> str:
    return "a read-only array" if hasattr(value, "__dlpack__") else type(value).__name__


def filling(found: Sequence[np.ndarray], memory: Sequence[np.ndarray]) -> None:
    """Copy results into the places for them. A result may lie in an input's memory, which may be
    an earlier place.
    """
    apart = [
        result.copy() if any(np.may_share_memory(result, m) for m in memory[:n]) else result
        for n, result in enumerate(found)
    ]
    for n, (result, place) in enumerate(zip(apart, memory, strict=True)):
        if (result.shape, result.dtype) != (place.shape, place.dtype):  # of a dynamic size
            texts = [type_text(a.shape, str(a.dtype)) for a in (result, place)]
            raise InputError(f"out[{n}]: expected {texts[0]}, found {texts[1]}")
        np.copyto(place, result)
