"""Whose files are used: what is read goes by the file that was opened, not by its path.

A file counts as this user's if it belongs to them (or to root) and nobody else can write to it.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

USERS = (os.geteuid(), 0)  # whose files are used
# Who else may not write. Where only data is kept, a group may: umask 002 lets it.
OTHERS, EVERYBODY = stat.S_IWGRP | stat.S_IWOTH, stat.S_IWOTH
# Without O_NONBLOCK, opening a FIFO waits for its writer.
_OPEN = os.O_CLOEXEC | os.O_NONBLOCK


class Untrusted(OSError):
    """A file or folder that is not used: what was found, and what was expected."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return self.text


def open_folder(path: Path) -> int:
    """A descriptor of a folder that only its user can write to. Raises OSError."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | _OPEN)
    return _checked(handle, OTHERS)


def read_file(
    path: str | Path, limit: int, *, folder: int | None = None, writers: int = OTHERS
) -> bytes:
    """All of a regular file of at most `limit` bytes, in a folder's descriptor if that is given.

    A link is not followed. Raises OSError; Untrusted where none of the `writers` should be able to
    write.
    """
    handle = _opened(path, os.O_RDONLY, folder)
    with os.fdopen(_regular(handle, writers), "rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise Untrusted(f"it has more than {limit} bytes")
    return data


def open_to_append(path: Path, writers: int = EVERYBODY) -> int:
    """A descriptor of a regular file to add to, which is made where there is none."""
    return _regular(_opened(path, os.O_RDWR | os.O_CREAT | os.O_APPEND), writers)


def _opened(path: str | Path, flags: int, folder: int | None = None) -> int:
    try:
        return os.open(path, flags | os.O_NOFOLLOW | _OPEN, 0o644, dir_fd=folder)
    except OSError as err:
        if err.errno == errno.ELOOP:
            raise Untrusted("it is a link; expected a regular file") from err
        raise


def _regular(handle: int, writers: int) -> int:
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise Untrusted("it is a pipe, a device or a folder; expected a regular file")
    return _checked(handle, writers)


def _checked(handle: int, writers: int) -> int:
    """The descriptor, or Untrusted after it is closed."""
    found = os.fstat(handle)
    if found.st_uid not in USERS:
        os.close(handle)
        raise Untrusted(f"it belongs to user {found.st_uid}; expected {USERS[0]} or root")
    if found.st_mode & writers:
        os.close(handle)
        mode = stat.S_IMODE(found.st_mode)
        raise Untrusted(f"others can write to it (mode {mode:o}); expected what chmod go-w gives")
    return handle
