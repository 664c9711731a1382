"""CUDA source compiled and loaded by CuPy. As a program, what CuPy is asked in a process of its
own: to compile and run one small kernel with shared memory, barriers, denormals and the headers
that TVM's source includes. Arguments: folders of headers.

The text runs as it is (cuda.py). Before anything is tried, a line of JSON says which GPU it is;
another one says that it was right.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from types import ModuleType
from typing import Any

BLOCKS, THREADS, TURNS = 3, 64, 4
SOURCE = """
#include <cuda/std/cstdint>
#include <cuda_fp16.h>
#include <math_constants.h>
extern "C" __global__ void turned(const float* x, float* y) {
  __shared__ float s[64];
  int t = threadIdx.x, b = blockIdx.x;
  float sum = 0.0f;
  for (int i = 0; i < 4; ++i) {
    __syncthreads();
    s[t] = x[(b * 4 + i) * 64 + t];
    __syncthreads();
    sum += s[63 - t];
  }
  y[b * 64 + t] = sum;
}
"""


def loaded(cupy: ModuleType, source: str, headers: Iterable[str]) -> Any:
    """The module of CUDA source on the current GPU; CuPy's errors. Not by `RawModule`, which has
    denormals become 0.
    """
    options = ("-std=c++17", *(f"-I{folder}" for folder in headers))
    binary, _ = cupy.cuda.compiler.compile_using_nvrtc(source, options)
    module = cupy.cuda.function.Module()
    module.load(binary)
    return module


def main(headers: list[str]) -> None:
    """Ask the first GPU."""
    # First TVM, as in the process that asks: both load libraries of CUDA.
    import selfbyoc.tvm  # noqa: F401
    import cupy  # type: ignore[import-not-found,unused-ignore]  # isort: skip
    import numpy as np

    runtime = cupy.cuda.runtime
    facts = runtime.getDeviceProperties(0)
    named = {
        "device": facts["name"].decode(),
        "arch": f"sm_{facts['major']}{facts['minor']}",
        "driver": runtime.driverGetVersion(),
    }
    print(json.dumps(named), flush=True)
    kernel = loaded(cupy, SOURCE, headers).get_function("turned")
    x = np.arange(BLOCKS * TURNS * THREADS, dtype="float32") * np.float32(2.0**-149)
    y = cupy.full(BLOCKS * THREADS, np.nan, "float32")
    kernel((BLOCKS, 1, 1), (THREADS, 1, 1), (cupy.asarray(x), y))
    wanted = x.reshape(BLOCKS, TURNS, THREADS).sum(1)[:, ::-1].ravel()
    count = int((y.get() != wanted).sum())
    if count:
        sys.exit(f"it computes {count} of {y.size} numbers wrong")
    print(json.dumps({"right": True}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
