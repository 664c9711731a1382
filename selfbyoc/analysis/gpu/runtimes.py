"""Which OpenCL runtime serves on this CPU. That one is installed says little: POCL 3.0 (LLVM 14)
compiles nothing on a CPU that it does not know.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ...asked import ask_python
from ...errors import MissingExtra, ToolError

# The optimiser of POCL 3.0 and 3.1 leaves out what comes after a loop of few turns with barriers;
# Intel's is right with it and without. It is our kernels that are judged, and no optimiser.
OPTIONS = ("-cl-opt-disable",)
_QUESTION = Path(__file__).with_name("opencl_question.py")
_VENDORS = Path("/etc/OpenCL/vendors")  # where a system's runtimes are
_INSTALL = "pip install 'selfbyoc[opencl]'"
_OTHER = "others: apt install pocl-opencl-icd, pip install 'selfbyoc[opencl-intel]'"


@dataclass(frozen=True)
class Runtime:
    """One that serves: the file that OpenCL's loader finds it by, and what it calls itself."""

    file: Path
    platform: str
    version: str
    device: str

    def __str__(self) -> str:
        return f"{self.platform} {self.version}, {self.device}"


def serving() -> Runtime:
    """The first runtime that serves. Raises MissingExtra where none is installed, and ToolError
    where none serves, which says why of each.
    """
    found = _asked()
    if isinstance(found, Runtime):
        return found
    raise (ToolError if found.is_installed else MissingExtra)(found.why)


def cannot_run() -> str:
    """Why no kernel is run here, or ''."""
    found = _asked()
    return "" if isinstance(found, Runtime) else found.why


@dataclass(frozen=True)
class _Nobody:
    why: str
    is_installed: bool


@cache
def _asked() -> Runtime | _Nobody:
    if importlib.util.find_spec("pyopencl") is None:
        return _Nobody(f"OpenCL is not installed: {_INSTALL}", False)
    broken, known = [], list(files())
    for file in known:
        answer = _answer(file)
        if isinstance(answer, Runtime):
            return answer
        broken.append(answer)
    if not broken:
        return _Nobody(f"OpenCL has no runtime here: {_INSTALL}", False)
    tip = "" if set(_intel()) & set(known) else f" ({_OTHER})"
    return _Nobody(f"no OpenCL runtime serves here: {'; '.join(broken)}{tip}", True)


def files() -> Iterator[Path]:
    """By which OpenCL's loader finds each runtime, in the order in which they are asked: those that
    OCL_ICD_VENDORS names, where it is set; else Intel's where somebody installed it, which notices
    more (docs/without-a-gpu.md), POCL's wheel, and the system's.
    """
    named = os.environ.get("OCL_ICD_VENDORS")
    if named:
        place = Path(named)
        yield from sorted(place.glob("*.icd")) if place.is_dir() else [place]
        return
    yield from _intel()
    spec = importlib.util.find_spec("pyopencl")
    if spec is not None and spec.origin is not None:  # the wheels of pyopencl look there too
        yield from sorted(Path(spec.origin).parent.glob(".libs/*.icd"))
    yield from sorted(_VENDORS.glob("*.icd"))


def _intel() -> Iterator[Path]:
    """Of Intel's wheel, whose own .icd names a folder that pip does not fill in."""
    try:
        found = importlib.metadata.files("intel-opencl-rt") or []
    except importlib.metadata.PackageNotFoundError:
        return
    yield from (Path(str(file.locate())) for file in found if file.name == "libintelocl.so")


def only(file: Path) -> dict[str, str]:
    """Variables with which OpenCL's loader finds this runtime: ocl-icd's, and the Khronos loader's.
    pyopencl's wheels have the first, whose variable takes a file; it adds what lies beside it.
    """
    return {"OCL_ICD_VENDORS": str(file), "OCL_ICD_FILENAMES": _library(file)}


def _library(file: Path) -> str:
    """What an .icd names, which may lie beside it."""
    if file.suffix != ".icd":
        return str(file)
    try:
        name = file.read_text(encoding="utf-8", errors="replace").strip().replace("\0", "")
    except OSError:  # asked all the same: the answer says what is wrong with it
        return str(file)
    return str(beside) if (beside := file.parent / name).exists() else name


def _answer(file: Path) -> Runtime | str:
    """Whom the file leads to, if it serves; else its name and why not."""
    fresh = {"PYOPENCL_NO_CACHE": "1", "POCL_KERNEL_CACHE": "0"}  # nothing compiled before
    found = ask_python(
        _QUESTION.read_text(encoding="utf-8"), '"right": true', _library(file), *OPTIONS,
        env={**only(file), **fresh},
    )  # fmt: skip
    named = re.findall(r'^{"platform": .*}$', found.printed, re.MULTILINE)
    if not named:
        return f"{file.stem}: {found.why_not}"
    runtime = Runtime(file, **json.loads(named[-1]))
    return f"{runtime}: {found.why_not}" if found.why_not else runtime
