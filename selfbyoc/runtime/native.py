"""An exported file as a module of TVM's."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ..common.files import is_utf8
from ..errors import InputError, one_line
from .executors.generation import executor

if TYPE_CHECKING:
    from ..tvm.types import Module

Stamp = tuple[int, int, int, int]  # what tells a file from its next version
_loaded: dict[Path, Stamp] = {}
_stamps: dict[tuple[int, int], Stamp] = {}  # of what was loaded, by device and number
_MANY = 1000  # so many files are remembered before those are forgotten that are not mapped any more


def stamp(path: Path) -> Stamp:
    """Device, number, bytes and time of a file. Raises InputError where it is gone."""
    try:
        found = path.stat()
    except OSError as err:
        raise InputError(f"{path} cannot be read: {err.strerror}") from err
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def copy_loaded(path: Path, to: Path, then: Stamp | None) -> None:
    """Copy a file that was loaded. Raises InputError where it is another one by now."""
    shutil.copyfile(path, to)
    if stamp(path) != then:
        raise InputError(f"{path} is not the file any more that was loaded")


def native_module(path: Path, now: Stamp) -> Module:
    """The file as a module of TVM's. Under a name that it knows, the system's loader hands out the
    file that was there before, so the second time it gets another one.

    Raises InputError where it cannot be loaded, or was written into since it was: the loader would
    hand out what it has, which is code of two files by now.
    """
    place, file = path.resolve(), now[:2]
    if _stamps.get(file, now) != now and _is_mapped(*file, place):
        raise InputError(
            f"{path} was written into while this process has it loaded, which is no longer safe to "
            f"use: start it again, and rename new files to their places (mv, not cp)"
        )
    try:
        native = _module(path, place)
        if not executor.is_runnable(native):
            raise ValueError("it has no function that runs a model")
    except Exception as err:  # TVM's own, with what the system's loader said
        raise InputError(f"{path} cannot be loaded: {one_line(err)}") from err
    if len(_loaded) >= _MANY:
        _forget()
    _loaded[place] = _stamps[file] = now
    return native


def _module(path: Path, place: Path) -> Module:
    whole = str(path.absolute())  # a bare name is looked for elsewhere
    if place not in _loaded and is_utf8(whole):
        return executor.load_module(whole)
    with tempfile.TemporaryDirectory() as folder:
        link = Path(folder) / (path.name if is_utf8(path.name) else f"library{path.suffix}")
        link.symlink_to(place)
        return executor.load_module(str(link))


def _forget() -> None:
    """A server may swap models for years."""
    mapped = _mapped()
    for place, stamp in [*_loaded.items()]:
        if not _is_among(mapped, *stamp[:2], place):
            _loaded.pop(place, None)
            _stamps.pop(stamp[:2], None)


def _is_mapped(device: int, number: int, place: Path) -> bool:
    return _is_among(_mapped(), device, number, place)


def _mapped() -> list[list[str]]:
    """The lines of files that this process has mapped; none where there is no Linux."""
    with suppress(OSError):
        lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
        return [found for line in lines if len(found := line.split(maxsplit=5)) > 5]
    return []


def _is_among(mapped: list[list[str]], device: int, number: int, place: Path) -> bool:
    """Numbers of files that are gone are given again. Not every file system tells the loader the
    device that it tells others.
    """
    disk = f"{os.major(device):02x}:{os.minor(device):02x}"
    return any(m[4] == str(number) and (m[3] == disk or m[5] == str(place)) for m in mapped)
