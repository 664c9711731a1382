"""CUDA source compiled for a GPU without one: NVRTC, and what its assembler says of registers."""

from __future__ import annotations

import ctypes
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ...common.optional import folder_of
from ...common.probes import ask_python, once
from ...errors import LoweringError, MissingExtra, ToolError
from .headers import headers
from .nvrtc_library import compiled

ARCHES = ("sm_80", "sm_90")
_PACKAGE = "nvidia.cuda_nvrtc"
_USED = re.compile(
    r"Compiling entry function '(?P<name>\w+)'.*?"
    r"(?P<stack>\d+) bytes stack frame, (?P<stores>\d+) bytes spill stores, "
    r"(?P<loads>\d+) bytes spill loads.*?Used (?P<registers>\d+) registers(?P<rest>[^\n]*)",
    re.DOTALL,
)
_SHARED = re.compile(r"(\d+) bytes smem")
_QUESTION = Path(__file__).with_name("nvrtc_library.py")
_RIGHT = r"(?s)entry function 'turned'.* 256 bytes smem"  # its 64 floats


@dataclass(frozen=True)
class Assembled:
    """What the assembler says of one kernel."""

    name: str
    registers: int
    spilled: int  # bytes stored and loaded again
    stack: int
    shared: int


def cannot_assemble() -> str:
    """Why nothing is compiled here, or ''."""
    if folder_of(_PACKAGE) is None:
        return "NVRTC is not installed: pip install 'selfbyoc[cuda]'"
    library = _place()
    asks = (str(library), ARCHES[0], *headers())
    code = _QUESTION.read_text(encoding="utf-8")
    return once("NVRTC", [library], lambda: ask_python(code, _RIGHT, *asks).why_not)


def assembled(source: str, arch: str) -> list[Assembled]:
    """The kernels of CUDA source, in its order."""
    log = compile_cuda(source, arch)
    return [
        Assembled(
            name=found["name"],
            registers=int(found["registers"]),
            spilled=int(found["stores"]) + int(found["loads"]),
            stack=int(found["stack"]),
            shared=sum(map(int, _SHARED.findall(found["rest"]))),
        )
        for found in _USED.finditer(log)
    ]


def compile_cuda(source: str, arch: str) -> str:
    """What NVRTC and its assembler say. LoweringError if they refuse it; MissingExtra and ToolError
    where they do not serve.
    """
    status, log = compiled(_nvrtc(), source, arch, headers())
    if status:
        raise LoweringError(f"NVRTC does not compile it for {arch}: {log}")
    return log


@cache
def _nvrtc() -> ctypes.CDLL:
    if why := cannot_assemble():
        raise (ToolError if folder_of(_PACKAGE) else MissingExtra)(why)
    return ctypes.CDLL(str(_place()))


def _place() -> Path:
    """The library's."""
    folder = folder_of(_PACKAGE)
    assert folder is not None
    known = sorted((folder / "lib").glob("libnvrtc.so*"))
    return next(iter(known), folder / "lib" / "libnvrtc.so")
