"""Entries in a folder: written whole or not at all, checked when read, the oldest dropped."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

logger = logging.getLogger(__name__)

_MAGIC = b"selfbyoc-cache 1\n"  # the format; another one is another name, and not read
_SUFFIX = ".kernel"
# A kernel takes 10 to 60 KB: GoogLeNet's 18 take 0.5 MB. This is some hundred models.
LIMIT = 256 << 20
_TRUSTED = (os.getuid(), 0)  # whose files are run: this user's and root's
_EVERY = 64  # writes between two looks at the size: listing a full folder takes 50 ms


@dataclass(frozen=True)
class Entry:
    """One file: its key, what its writer said of it, its bytes on disk and its last use."""

    key: str
    about: Mapping[str, Any]
    size: int
    used: float


class Store:
    """Texts by key in a folder. What cannot be read, written or trusted is as if it were absent."""

    def __init__(self, folder: Path, limit: int = LIMIT) -> None:
        self.folder, self.limit = folder, limit
        self._writes = 0

    def get(self, key: str) -> str | None:
        """The text under a key; None if there is none, or none that is whole and ours."""
        path = self._path(key)
        try:
            with path.open("rb") as file:
                owner, data = os.fstat(file.fileno()).st_uid, file.read()
        except OSError:
            return None
        if owner not in _TRUSTED:
            logger.warning("%s belongs to another user and is not read", path)
            return None
        try:
            text, _ = _unpacked(data, key)
        except ValueError as err:
            logger.warning("%s is damaged and is dropped: %s", path, err)
            _remove(path)
            return None
        _touch(path)
        return text

    def put(self, key: str, text: str, about: Mapping[str, Any]) -> None:
        """Write an entry beside the folder's others and give it its name when it is whole."""
        data = _packed(key, text, about)
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=self.folder, delete=False) as file:
                file.write(data)
            os.replace(file.name, self._path(key))
        except OSError as err:  # a full or read-only disk: the kernel is built, only not kept
            logger.warning("the compile cache cannot be written: %s", err)
            return
        if self._writes % _EVERY == 0:
            self.trim()
        self._writes += 1

    def trim(self) -> None:
        """Drop what was used longest ago until the rest fits into the limit."""
        found = sorted(self._files(), key=lambda f: f[2], reverse=True)
        total = 0
        for path, size, _ in found:
            total += size
            if total > self.limit:
                _remove(path)

    def clear(self) -> int:
        """Drop every entry; -> how many."""
        found = [path for path, _, _ in self._files()]
        for path in found:
            _remove(path)
        return len(found)

    def entries(self) -> list[Entry]:
        """All entries that are whole, the last used first."""
        found = []
        for path, size, used in sorted(self._files(), key=lambda f: f[2], reverse=True):
            try:
                _, about = _unpacked(path.read_bytes(), path.stem)
            except (OSError, ValueError):  # another process dropped it, or it is damaged
                continue
            found.append(Entry(path.stem, about, size, used))
        return found

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}{_SUFFIX}"

    def _files(self) -> Iterator[tuple[Path, int, float]]:
        for path in self.folder.glob(f"*{_SUFFIX}"):
            try:
                stat = path.stat()
            except OSError:  # another process dropped it
                continue
            yield path, stat.st_size, stat.st_mtime


def _packed(key: str, text: str, about: Mapping[str, Any]) -> bytes:
    body = json.dumps({"key": key, "about": dict(about), "text": text}).encode()
    return _MAGIC + hashlib.sha256(body).digest() + zlib.compress(body, 1)


def _unpacked(data: bytes, key: str) -> tuple[str, dict[str, Any]]:
    """The text and what was said of it; ValueError for anything that `_packed` did not write."""
    start = len(_MAGIC) + 32
    if not data.startswith(_MAGIC):
        raise ValueError("another format")
    try:
        body = zlib.decompress(data[start:])
    except zlib.error as err:
        raise ValueError(str(err)) from err
    if hashlib.sha256(body).digest() != data[len(_MAGIC) : start]:
        raise ValueError("its checksum differs")
    entry = json.loads(body)
    if entry["key"] != key:
        raise ValueError("it was written under another key")
    return entry["text"], entry["about"]


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as err:  # a read-only folder
        logger.warning("%s cannot be dropped: %s", path, err)


def _touch(path: Path) -> None:
    try:
        os.utime(path)
    except OSError:  # a read-only folder, or dropped meanwhile: only its age is not renewed
        return
