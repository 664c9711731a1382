"""The cache's folder while it is open: files by name, written whole or not at all."""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ...common.trusted import Untrusted, open_folder, read_file

_PART = ".part"  # a file that is being written
_FORSAKEN = 3600.0  # seconds after which nobody writes it any more
_SECRET, _SECRET_SIZE = "secret", 32
_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")


@dataclass(frozen=True)
class Folder:
    """A folder by its descriptor: it stays the one that was checked, wherever its path leads."""

    handle: int

    def read(self, name: str, limit: int) -> bytes:
        """All of a file of this user's. Raises OSError."""
        return read_file(name, limit, folder=self.handle)

    def write(self, name: str, data: bytes) -> None:
        """A whole file or, whatever goes wrong, none. Raises OSError."""
        part = self._written(data)
        try:
            os.replace(part, name, src_dir_fd=self.handle, dst_dir_fd=self.handle)
        except BaseException:  # Ctrl-C too
            self.drop(part)
            raise

    def _written(self, data: bytes) -> str:
        part = f".{secrets.token_hex(8)}{_PART}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            with os.fdopen(os.open(part, flags, 0o600, dir_fd=self.handle), "wb") as file:
                file.write(data)
        except BaseException:  # a full disk, or Ctrl-C
            self.drop(part)
            raise
        return part

    def secret(self) -> bytes:
        """What entries are signed with; FileNotFoundError where nothing was written yet."""
        try:
            found = self.read(_SECRET, _SECRET_SIZE)
        except Untrusted as err:
            raise Untrusted(f"{_SECRET}: {err}") from err
        if len(found) != _SECRET_SIZE:
            raise Untrusted(f"{_SECRET} has {len(found)} bytes; expected {_SECRET_SIZE}")
        return found

    def make_secret(self) -> bytes:
        """The secret, made by whoever comes first."""
        try:
            return self.secret()
        except FileNotFoundError:
            part = self._written(secrets.token_bytes(_SECRET_SIZE))
        try:
            with suppress(FileExistsError):  # another process was faster
                os.link(part, _SECRET, src_dir_fd=self.handle, dst_dir_fd=self.handle)
        finally:
            self.drop(part)
        return self.secret()

    def drop(self, name: str) -> None:
        """Remove a file, if it is there. Raises OSError where the folder cannot be written."""
        try:
            os.unlink(name, dir_fd=self.handle)
        except FileNotFoundError:  # another process dropped it
            return

    def touch(self, name: str) -> None:
        """Renew a file's age. Raises OSError."""
        os.utime(name, dir_fd=self.handle, follow_symlinks=False)

    def files(self, suffix: str) -> Iterator[tuple[str, os.stat_result]]:
        """The names with this suffix, and what is known of each."""
        for name in os.listdir(self.handle):
            if not name.endswith(suffix):
                continue
            try:
                yield name, os.stat(name, dir_fd=self.handle, follow_symlinks=False)
            except FileNotFoundError:  # another process dropped it
                continue

    def sweep(self) -> None:
        """Drop what processes that were killed left half written."""
        for name, stat in self.files(_PART):
            if stat.st_mtime < time.time() - _FORSAKEN:
                self.drop(name)


@contextmanager
def opened(path: Path) -> Iterator[Folder]:
    """The folder, if only this user (or root) can write to it. Raises OSError."""
    handle = open_folder(path)
    try:
        yield Folder(handle)
    finally:
        os.close(handle)


def file_name(key: str, suffix: str) -> str:
    """The file of a key. Raises ValueError for a key that is no name, as a path would be."""
    if not _NAME.fullmatch(key):
        raise ValueError(f"{key[:80]!r} is no key")
    return key + suffix
