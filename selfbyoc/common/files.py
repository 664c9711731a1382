"""Files that a user names: read up to a size, and written whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Literal

from ..errors import InputError

LARGEST = 64 << 20  # bytes of a report; that of the whole benchmark has 0.3 MB
_PART = ".partial"  # a file that is being written
_FORSAKEN = 3600.0  # seconds after which nobody writes it any more
_STREAMS = (stat.S_IFIFO, stat.S_IFCHR, stat.S_IFSOCK)
_KINDS = {
    stat.S_IFDIR: "a directory", stat.S_IFBLK: "a device", stat.S_IFCHR: "a device",
    stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket",
}  # fmt: skip
_OPEN = os.O_CLOEXEC | os.O_NONBLOCK  # without the latter, opening a FIFO waits for its writer


def expanded(path: str | Path) -> Path:
    """A path without `~`. Raises InputError where there is no home, and for what is no path."""
    try:
        return Path(path).expanduser()
    except TypeError as err:
        raise InputError(f"expected a path, found {type(path).__name__}: {path!r:.100}") from err
    except RuntimeError as err:
        raise InputError(f"{path}: there is no home folder; expected HOME or another path") from err


def is_utf8(text: str) -> bool:
    """Whether a name is text: Linux lets a file have any bytes, which Python has as surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_text(path: Path, limit: int = LARGEST) -> str:
    """A text file's content. Raises InputError for what is no file, is too large or is no UTF-8."""
    try:
        return read_bytes(path, limit).decode()
    except UnicodeDecodeError as err:
        raise InputError(f"{path} cannot be read: byte {err.start} is no UTF-8") from err


def read_bytes(path: Path, limit: int) -> bytes:
    """A file's content. Raises InputError for what is no file, or is too large."""
    with opened(path) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise InputError(f"{path} cannot be read: expected at most {limit} bytes, found more")
    return data


@contextmanager
def opened(path: Path, mode: Literal["rb", "r+b"] = "rb") -> Iterator[BinaryIO]:
    """A regular file. Raises InputError, also for what goes wrong while it is read."""
    flags = os.O_RDONLY if mode == "rb" else os.O_RDWR
    try:
        with os.fdopen(os.open(path, flags | _OPEN), mode) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise InputError(f"{path} cannot be read: expected a regular file")
            yield file
    except OSError as err:
        raise InputError(f"{path} cannot be read: {_why(err)}") from err
    except ValueError as err:
        if "\0" not in str(path):
            raise
        raise InputError(f"{path} cannot be read: {_why(err)}") from err


def write_text(path: Path, text: str) -> None:
    """A text into a file, as `written` says; a pipe or a terminal takes it as it is."""
    data = text.encode(errors="surrogateescape")
    check_output(path, takes_text=True)
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)
            return
    except OSError as err:
        raise InputError(f"{path} cannot be written: {_why(err)}") from err
    with written(path) as part:
        part.write_bytes(data)


def check_output(path: Path, read: Iterable[Path] = (), takes_text: bool = False) -> None:
    """InputError where a file cannot be put at this path: another thing is there than a regular
    file, such as a device or a pipe, or one of the files that it is made of. A link is followed.

    takes_text   also pipes, terminals and the like, which are written to and not replaced
    """
    try:
        found = path.stat()
    except FileNotFoundError:
        return
    except (OSError, ValueError) as err:
        raise InputError(f"{path} cannot be written: {_why(err)}") from err
    kind = stat.S_IFMT(found.st_mode)
    if kind != stat.S_IFREG and not (takes_text and kind in _STREAMS):
        what = _KINDS.get(kind, "something else")
        raise InputError(f"{path} cannot be written: expected a regular file, found {what}")
    for other in read:
        with suppress(OSError, ValueError):
            if kind == stat.S_IFREG and os.path.samestat(found, other.stat()):
                text = f"it is {other}, which is read for it"
                raise InputError(f"{path} cannot be written: {text}")


@contextmanager
def written(path: Path) -> Iterator[Path]:
    """A file beside this one to write into, which takes its place when all is well: a full disk or
    Ctrl-C leaves what was there, and no other file. What a killed process left half written goes
    when the file is written again.

    Raises InputError for what the system says, and for what is there and no regular file.
    """
    check_output(path)
    try:
        place = path.resolve()  # a link stays one, and leads to the new file
        place.parent.mkdir(parents=True, exist_ok=True)
        with suppress(OSError):  # a folder that may be written and not be listed
            _sweep(place)
        part = place.with_name(_part(place, secrets.token_hex(4)))
        with _dropped(part):
            yield part
            part.replace(place)
    except (OSError, ValueError) as err:
        raise InputError(f"{path} cannot be written: {_why(err)}") from err


@contextmanager
def _dropped(part: Path) -> Iterator[None]:
    try:
        yield
    except BaseException:  # Ctrl-C leaves no part of a file either
        with suppress(OSError):
            part.unlink()
        raise


def _part(place: Path, token: str) -> str:
    """With the suffix, which tools go by. No name has more than 255 bytes; what is no UTF-8 is left
    out.
    """
    parts = (os.fsencode(text)[:100] for text in (place.stem, place.suffix))
    stem, suffix = (part.decode(errors="ignore") for part in parts)
    return f".{stem}.{token}{_PART}{suffix}"


def _sweep(place: Path) -> None:
    before, after = _part(place, "\0").split("\0")
    for part in place.parent.iterdir():
        if part.name.startswith(before) and part.name.endswith(after):
            with suppress(OSError):  # another process is done with it
                if part.lstat().st_mtime < time.time() - _FORSAKEN:
                    part.unlink()


def _why(err: Exception) -> str:
    return (err.strerror if isinstance(err, OSError) else None) or str(err)
