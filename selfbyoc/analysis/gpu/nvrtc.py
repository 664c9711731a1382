"""CUDA source compiled for a GPU without one: NVRTC, and what its assembler says of registers."""

from __future__ import annotations

import ctypes
import importlib.util
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ...errors import LoweringError, MissingExtra

ARCHES = ("sm_80", "sm_90")
# NVRTC, and headers that 0.27's source includes.
_PACKAGES = ("nvidia.cuda_nvrtc", "nvidia.cuda_cccl")
_USED = re.compile(
    r"Compiling entry function '(?P<name>\w+)'.*?"
    r"(?P<stack>\d+) bytes stack frame, (?P<stores>\d+) bytes spill stores, "
    r"(?P<loads>\d+) bytes spill loads.*?Used (?P<registers>\d+) registers(?P<rest>[^\n]*)",
    re.DOTALL,
)
_SHARED = re.compile(r"(\d+) bytes smem")


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
    found = all(_folder(package) for package in _PACKAGES)
    return "" if found else "NVRTC is not installed: pip install 'selfbyoc[cuda]'"


def _folder(package: str) -> Path | None:
    try:
        spec = importlib.util.find_spec(package)
    except ModuleNotFoundError:  # of `nvidia`
        return None
    places = spec.submodule_search_locations if spec else None
    return Path(next(iter(places))) if places else None


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
    """What NVRTC and its assembler say; LoweringError if they refuse it."""
    (nvrtc, headers), program = _nvrtc(), ctypes.c_void_p()
    options = [
        f"--gpu-architecture={arch}", "--ptxas-options=-v", "--std=c++17", f"-I{headers}",
    ]  # fmt: skip
    argv = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None)
    try:
        status = nvrtc.nvrtcCompileProgram(program, len(options), argv)
        log = _log(nvrtc, program)
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    if status:
        raise LoweringError(f"NVRTC does not compile it for {arch}: {log}")
    return log


def _log(nvrtc: ctypes.CDLL, program: ctypes.c_void_p) -> str:
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, text)
    return text.value.decode(errors="replace")


@cache
def _nvrtc() -> tuple[ctypes.CDLL, Path]:
    """The library, and where the headers are."""
    if why := cannot_assemble():
        raise MissingExtra(why)
    nvrtc, headers = (_folder(package) for package in _PACKAGES)
    assert nvrtc is not None
    assert headers is not None
    (library,) = (nvrtc / "lib").glob("libnvrtc.so.*")
    return ctypes.CDLL(str(library)), headers / "include"
