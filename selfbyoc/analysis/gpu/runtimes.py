"""Which OpenCL runtime serves on this CPU. That one is installed says little: POCL 3.0 (LLVM 14)
compiles nothing on a CPU that it does not know.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ...common.probes import ask_beside, ask_python
from ...errors import MissingExtra, ToolError
from . import opencl_question

# The optimiser of POCL 3.0 and 3.1 leaves out what comes after a loop of few turns with barriers;
# Intel's is right with it and without. It is our kernels that are judged, and no optimiser.
OPTIONS = ("-cl-opt-disable",)
_RIGHT = '"right": true'
_VENDORS = Path("/etc/OpenCL/vendors")  # where a system's runtimes are
_INSTALL = "pip install 'selfbyoc[opencl]'"


@dataclass(frozen=True)
class Runtime:
    """One that serves: the file that OpenCL's loader finds it by, and what it calls itself."""

    file: Path
    platform: str
    version: str
    device: str
    halves: bool  # float16, which POCL 3.0 has on no CPU

    def __str__(self) -> str:
        return f"{self.platform} {self.version}, {self.device}"


def serving() -> Runtime:
    """The first runtime that serves. Raises MissingExtra where none is installed, and ToolError
    where none serves, which says why of each.
    """
    found = _asked(_loaded())
    if isinstance(found, Runtime):
        return found
    raise (ToolError if found.is_installed else MissingExtra)(found.why)


def cannot_run() -> str:
    """Why no kernel is run here, or ''."""
    found = _asked(_loaded())
    return "" if isinstance(found, Runtime) else found.why


@dataclass(frozen=True)
class _Nobody:
    why: str
    is_installed: bool


@cache
def _asked(loaded: frozenset[str]) -> Runtime | _Nobody:
    """Alone, and in a fork of this process, which has loaded these libraries."""
    if importlib.util.find_spec("pyopencl") is None:
        return _Nobody(f"OpenCL is not installed: {_INSTALL}", False)
    broken, known = [], list(files())
    for file in known:
        answer = alone(file)
        if isinstance(answer, Runtime):
            answer = beside(answer)
        if isinstance(answer, Runtime):
            return answer
        broken.append(answer)
    if not broken:
        return _Nobody(f"OpenCL has no runtime here: {_INSTALL}", False)
    return _Nobody(f"no OpenCL runtime serves here: {'; '.join(broken)}{_others(known)}", True)


def _others(known: Sequence[Path]) -> str:
    """How to install those that were not asked."""
    ways = {
        "apt install pocl-opencl-icd": _VENDORS.glob("pocl*.icd"),
        "pip install 'selfbyoc[opencl-intel]'": _intel(),
    }
    left = [how for how, there in ways.items() if not set(there) & set(known)]
    return f" (others: {', '.join(left)})" if left else ""


def _loaded() -> frozenset[str]:
    """The libraries of this process; another one may have what a runtime finds in the place of its
    own, as OpenVINO's libtbb.so.12 that of Intel's.
    """
    maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    return frozenset(line.rpartition(" ")[2] for line in maps.splitlines() if ".so" in line)


def files() -> Iterator[Path]:
    """By which OpenCL's loader finds each runtime, in the order in which they are asked: those that
    OCL_ICD_VENDORS names, where it is set; else Intel's where somebody installed it, which notices
    more (docs/makers/without-a-gpu.md), POCL's wheel, and the system's.
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


@cache
def alone(file: Path) -> Runtime | str:
    """Whom the file leads to, if it serves in a fresh process; else its name and why not."""
    fresh = {"PYOPENCL_NO_CACHE": "1", "POCL_KERNEL_CACHE": "0"}  # nothing compiled before
    question = Path(opencl_question.__file__).read_text(encoding="utf-8")
    found = ask_python(
        question, _RIGHT, _library(file), *OPTIONS, env={**only(file), **fresh}
    )  # fmt: skip
    named = _named(found.printed)
    if named is None:
        return f"{file.stem}: {found.why_not}"
    runtime = Runtime(file, **named)
    return f"{runtime}: {found.why_not}" if found.why_not else runtime


def beside(runtime: Runtime) -> Runtime | str:
    """The runtime, if it serves with what this process has loaded; else its name and why not."""

    def call() -> None:
        os.environ.update(only(runtime.file))
        opencl_question.main(_library(runtime.file), list(OPTIONS))

    found = ask_beside(call, _RIGHT)
    why = found.why_not
    if not why and Runtime(runtime.file, **(_named(found.printed) or {})) != runtime:
        why = "it is not there: OpenCL was used before"
    return f"{runtime}: beside what this process has loaded: {why}" if why else runtime


def _named(printed: str) -> dict[str, Any] | None:
    """The last device that was tried."""
    found = re.findall(r'^{"platform": .*}$', printed, re.MULTILINE)
    return json.loads(found[-1]) if found else None
