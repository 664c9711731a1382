"""NVRTC by its C functions. As a program, what it is asked in a process of its own: to compile one
small kernel. Arguments: the library, the GPU's architecture, folders of headers.

The text stands alone (nvrtc.py): to import this package would bring TVM.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterable

# With the headers that TVM's source includes.
SOURCE = """
#include <cuda/std/cstdint>
#include <cuda_fp16.h>
#include <math_constants.h>
extern "C" __global__ void turned(float* x) {
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = s[63 - threadIdx.x];
}
"""


def compiled(
    library: ctypes.CDLL, source: str, arch: str, headers: Iterable[str]
) -> tuple[int, str]:
    """Its status, 0 if it went well, and what NVRTC and its assembler say."""
    program = ctypes.c_void_p()
    options = [f"--gpu-architecture={arch}", "--ptxas-options=-v", "--std=c++17"]
    options += [f"-I{folder}" for folder in headers]
    argv = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None)
    try:
        status = library.nvrtcCompileProgram(program, len(options), argv)
        return status, _log(library, program)
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _log(library: ctypes.CDLL, program: ctypes.c_void_p) -> str:
    size = ctypes.c_size_t()
    library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    library.nvrtcGetProgramLog(program, text)
    return text.value.decode(errors="replace")


if __name__ == "__main__":
    found, log = compiled(ctypes.CDLL(sys.argv[1]), SOURCE, sys.argv[2], sys.argv[3:])
    print(log)
    sys.exit(log if found else 0)
