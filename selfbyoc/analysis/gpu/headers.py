"""CUDA's headers, which the source that TVM writes includes."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from ...common.optional import folder_of

# Of wheels for CUDA 12, for CUDA 13, of a toolkit.
_WHEELS = (
    ("nvidia.cuda_cccl", "include"),
    ("nvidia.cuda_runtime", "include"),
    ("nvidia.cu13", "include/cccl"),
    ("nvidia.cu13", "include"),
)
_TOOLKIT = Path("/usr/local/cuda/include")
# Of TVM 0.27's kernels; where an infinity is in them; where float16 is.
_INCLUDED = ("cuda/std/cstdint", "math_constants.h", "cuda_fp16.h")


@cache
def headers() -> tuple[str, ...]:
    """The folders that have one."""
    wheels = [folder / below for name, below in _WHEELS if (folder := folder_of(name))]
    folders = [*wheels, _TOOLKIT / "cccl", _TOOLKIT]
    return tuple(str(f) for f in folders if any((f / name).is_file() for name in _INCLUDED))
