"""Entries in a folder: written whole or not at all, checked when read, the oldest dropped."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ...common.trusted import Untrusted
from .entry import LARGEST, packed, unpacked
from .folder import Folder, file_name, opened

logger = logging.getLogger(__name__)

_SUFFIX = ".kernel"
# A kernel takes 10 to 60 KB: GoogLeNet's 18 take 0.5 MB. This is some hundred models.
LIMIT = 256 << 20
_EVERY = 64  # writes between two looks at the size: listing a full folder takes 50 ms
_told: set[str] = set()  # what this process has warned of


@dataclass(frozen=True)
class Entry:
    """One file: its key, what its writer said of it, its bytes on disk and its last use."""

    key: str
    about: Mapping[str, object]
    size: int
    used: float


class Store:
    """Texts by key in a folder. What cannot be read, written or trusted is as if it were absent."""

    def __init__(self, folder: Path, limit: int = LIMIT) -> None:
        self.folder, self.limit = folder, limit
        self._writes = 0

    def get(self, key: str) -> str | None:
        """The text under a key; None if there is none, or none that is whole and ours."""
        try:
            name = file_name(key, _SUFFIX)
        except ValueError as err:
            warn(f"{self.folder} is asked for a key that is none: {err}")
            return None
        text = None
        with self._quietly("read"), opened(self.folder) as folder:
            secret = folder.secret()
            text = self._text(folder, name, key, secret)
        return text

    def _text(self, folder: Folder, name: str, key: str, secret: bytes) -> str | None:
        try:
            text, _ = unpacked(folder.read(name, LARGEST), key, secret)
        except (ValueError, Untrusted) as err:
            warn(f"{self.folder / name} is not used and is dropped: {err}")
            self._drop(folder, name)
            return None
        with suppress(OSError):  # read-only, or dropped meanwhile: only its age is not renewed
            folder.touch(name)
        return text

    def put(self, key: str, text: str, about: Mapping[str, object]) -> None:
        """Write an entry beside the folder's others and give it its name when it is whole."""
        name = file_name(key, _SUFFIX)
        with self._quietly("written"):  # a full or read-only disk: built, only not kept
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with opened(self.folder) as folder:
                self._put(folder, name, key, text, about)

    def _put(
        self, folder: Folder, name: str, key: str, text: str, about: Mapping[str, object]
    ) -> None:
        try:
            data = packed(key, text, about, folder.make_secret())
        except ValueError as err:
            warn(f"{name} is not kept in the compile cache: {err}")
            return
        folder.write(name, data)
        if self._writes % _EVERY == 0:
            self._trim(folder)
        self._writes += 1

    def trim(self) -> None:
        """Drop what was used longest ago until the rest fits into the limit."""
        with self._quietly("trimmed"), opened(self.folder) as folder:
            self._trim(folder)

    def _trim(self, folder: Folder) -> None:
        folder.sweep()
        total = 0
        for name, size, _ in _by_age(folder):
            total += size
            if total > self.limit:
                self._drop(folder, name)

    def clear(self) -> int:
        """Drop every entry; -> how many."""
        count = 0
        with self._quietly("cleared"), opened(self.folder) as folder:
            folder.sweep()
            for name, _, _ in _by_age(folder):
                count += self._drop(folder, name)
        return count

    def entries(self) -> list[Entry]:
        """All entries that are whole and ours, the last used first."""
        found: list[Entry] = []
        with self._quietly("read"), opened(self.folder) as folder:
            secret = folder.secret()
            for name, size, used in _by_age(folder):
                key = name.removesuffix(_SUFFIX)
                try:
                    _, about = unpacked(folder.read(name, LARGEST), key, secret)
                except (OSError, ValueError):  # another process dropped it, or it is damaged
                    continue
                found.append(Entry(key, about, size, used))
        return found

    def _drop(self, folder: Folder, name: str) -> bool:
        try:
            folder.drop(name)
        except OSError as err:  # a read-only folder
            warn(f"{self.folder / name} cannot be dropped: {err}")
            return False
        return True

    @contextmanager
    def _quietly(self, done: str) -> Iterator[None]:
        """Go on without the cache where its folder is of no use: one warning of each folder."""
        try:
            yield
        except FileNotFoundError as err:
            if done == "written":
                self._warn_once(f"cannot be {done}: {err.strerror}")
        except (NotADirectoryError, FileExistsError):  # reading and writing say it differently
            self._warn_once("is not used: expected a folder, found a file")
        except Untrusted as err:
            self._warn_once(f"is not used: {err}")
        except OSError as err:
            self._warn_once(f"cannot be {done}: {err.strerror}")

    def _warn_once(self, text: str) -> None:
        """What cannot be read cannot be written either, and the other way round."""
        if str(self.folder) not in _told:
            _told.add(str(self.folder))
            logger.warning("the compile cache %s %s", self.folder, text)


def _by_age(folder: Folder) -> list[tuple[str, int, float]]:
    """Name, bytes and last use of each entry, the last used first."""
    found = [(name, stat.st_size, stat.st_mtime) for name, stat in folder.files(_SUFFIX)]
    return sorted(found, key=lambda f: f[2], reverse=True)


def warn(text: str) -> None:
    """Once in a process."""
    if text not in _told:
        _told.add(text)
        logger.warning(text)
