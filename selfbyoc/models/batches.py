"""Batches of an ONNX model's inputs: out of a folder of NumPy files, or made up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import BadZipFile

import numpy as np

from ..common.optional import extra
from ..errors import InputError, one_line
from ..graph import type_text
from .real_inputs import real_inputs

if TYPE_CHECKING:
    import onnx

Batch = dict[str, np.ndarray]  # one call of a model: input -> array
_BAD = (BadZipFile, EOFError, LookupError, OSError, SyntaxError, TypeError, ValueError)


def batches_in(folder: Path, model: onnx.ModelProto) -> list[Batch]:
    """One call of the model each: `.npz` files with an array for each input, by name, or, of a
    model with one input, `.npy` files. In the order of their names.
    """
    if not folder.is_dir():
        raise InputError(f"--data: {folder} is no folder")
    files = sorted(p for p in folder.iterdir() if p.suffix in (".npy", ".npz"))
    if not files:
        raise InputError(f"--data: {folder} has no .npz and no .npy file")
    inputs = real_inputs(model)
    return [_checked(_read(path, [v.name for v in inputs]), inputs, path) for path in files]


def _read(path: Path, names: Sequence[str]) -> Mapping[str, np.ndarray]:
    if path.suffix == ".npy" and len(names) > 1:
        listed = ", ".join(names)
        raise InputError(f"{path}: the model has inputs {listed}; expected an .npz file of them")
    try:
        found = np.load(path, allow_pickle=False)
        if isinstance(found, np.ndarray):
            return {names[0]: found}
        with found:
            return {name: found[name] for name in found.files}
    except _BAD as err:
        raise InputError(f"{path} cannot be read: {one_line(err)}") from err


def _checked(
    found: Mapping[str, np.ndarray], inputs: Sequence[onnx.ValueInfoProto], path: Path
) -> Batch:
    names = [value.name for value in inputs]
    if missing := [name for name in names if name not in found]:
        listed = ", ".join(found) or "nothing"
        raise InputError(f"{path}: expected an array for input {missing[0]!r}, found {listed}")
    for value in inputs:
        shape, dtype = type_of(value)
        array = found[value.name]
        fits = len(shape) == array.ndim and all(
            e in (None, n) for e, n in zip(shape, array.shape, strict=True)
        )
        if not fits or str(array.dtype) != dtype:
            was = type_text(array.shape, str(array.dtype))
            wanted = type_text(shape, dtype)
            raise InputError(f"{path}: input {value.name!r}: expected {wanted}, found {was}")
    return {name: found[name] for name in names}


def type_of(value: onnx.ValueInfoProto) -> tuple[tuple[int | None, ...], str]:
    """Shape and dtype of an input; None where a size is open."""
    tensor = value.type.tensor_type
    dims = (d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim)
    dtype = extra("onnx").helper.tensor_dtype_to_np_dtype(tensor.elem_type)
    return tuple(dims), str(np.dtype(dtype))
