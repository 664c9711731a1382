"""Weights that lie in files beside an ONNX model: read, where these files hold what it says."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from ...common.files import opened
from ...common.optional import extra
from ...errors import DamagedFile, InputError
from .sound import tensors

if TYPE_CHECKING:
    import onnx

_READ = 1 << 20  # bytes
_KNOWN = ("location", "offset", "length", "checksum", "basepath")


def with_weights(model: onnx.ModelProto, path: Path) -> None:
    """Put the weights of files beside a model's file into the model.

    Raises InputError for a key that ONNX has not, which would be passed over, such as a damaged
    "offset"; DamagedFile for a file that is too short, or that differs from its checksum.
    """
    outside = [t for t in tensors(model) if t.data_location == t.EXTERNAL]
    told = [_told(tensor, path) for tensor in outside]
    _check_files(told, path.parent)
    helper = extra("onnx").external_data_helper
    for tensor in outside:
        helper.load_external_data_for_tensor(tensor, str(path.parent))
        tensor.ClearField("data_location")
        del tensor.external_data[:]


def _told(tensor: onnx.TensorProto, path: Path) -> dict[str, str]:
    for entry in tensor.external_data:
        if entry.key not in _KNOWN:
            raise InputError(
                f"{path} is no ONNX model that can be read: external data of {tensor.name!r}: "
                f"{entry.key!r} is none of {', '.join(_KNOWN)}"
            )
    return {entry.key: entry.value for entry in tensor.external_data}


def _check_files(told: Iterable[Mapping[str, str]], folder: Path) -> None:
    """How far each file is read, and what its checksum is; where it may lie is onnx's to say."""
    needed: dict[str, int] = {}
    sums: dict[str, str] = {}
    for entries in told:
        name = entries.get("location", "")
        end = _number(entries, "offset") + _number(entries, "length")
        needed[name] = max(end, needed.get(name, 0))
        if given := entries.get("checksum"):
            sums[name] = given.lower()
    for name, size in needed.items():
        place = PurePosixPath(name)
        if name and not place.is_absolute() and ".." not in place.parts:
            _check_file(folder / name, size, sums.get(name))


def _number(entries: Mapping[str, str], key: str) -> int:
    text = entries.get(key, "0")
    return int(text) if text.isdecimal() else 0  # onnx refuses others


def _check_file(path: Path, size: int, checksum: str | None) -> None:
    if not path.is_file():
        return  # onnx refuses it
    if (found := path.stat().st_size) < size:
        raise DamagedFile(f"{path} is cut off: {found:,} of {size:,} bytes")
    if checksum is None:
        return
    digest = _sha1(path)
    if digest != checksum:
        raise DamagedFile(f"{path} is damaged: expected SHA-1 {checksum:.40}, found {digest}")


def _sha1(path: Path) -> str:
    """ONNX's checksum of such a file; hashlib.file_digest is of Python 3.11."""
    found = hashlib.sha1(usedforsecurity=False)
    with opened(path) as file:
        while data := file.read(_READ):
            found.update(data)
    return found.hexdigest()
