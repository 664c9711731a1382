"""Is an archive whole: PyTorch reads a .pt2 without comparing the checksums of its members."""

from __future__ import annotations

import os
import struct
import zlib
from lzma import LZMAError
from pathlib import Path
from typing import BinaryIO
from zipfile import BadZipFile, ZipFile, is_zipfile

from ..common.files import opened
from ..errors import DamagedFile, InputError

_MAGIC = b"PK\x03\x04"
# Of zipfile and what it reads with: RuntimeError is for a password, NotImplementedError for a way
# of compressing that there is not.
_BAD = (
    BadZipFile, EOFError, LZMAError, NotImplementedError, OSError, RuntimeError, ValueError,
    struct.error, zlib.error,
)  # fmt: skip


def check_archive(path: Path, kind: str) -> None:
    """Raise DamagedFile where it was cut off or a member differs from its checksum, InputError
    where it is none; `kind` is what it should be.
    """
    with opened(path) as file:
        try:
            bad = _bad_member(path, file, kind)
        except _BAD as err:
            raise DamagedFile(f"{path} is damaged: {err}") from err
    if bad is not None:
        raise DamagedFile(f"{path} is damaged: {bad} differs from its checksum")


def _bad_member(path: Path, file: BinaryIO, kind: str) -> str | None:
    start = file.read(len(_MAGIC))
    if start != _MAGIC[: len(start)]:
        raise InputError(f"{path} is no {kind}: expected an archive (zip)")
    if not is_zipfile(file):  # what it holds is told at its end
        found = os.fstat(file.fileno()).st_size
        raise DamagedFile(f"{path} is cut off: {found:,} bytes, and no directory at their end")
    with ZipFile(file) as archive:
        return archive.testzip()
