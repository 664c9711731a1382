"""What a plan needs to know of a GPU, as one value made from the target.

TVM's targets say some of it; what one does not say is what every device of its kind has.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..tvm import target_dict
from ..tvm.types import Target

WARP = 32  # where a target names none (OpenCL, Vulkan: 1): rows are then summed in shared memory
SHARED = {"cuda": 48 << 10, "rocm": 64 << 10}  # of a block, without asking the driver for more
LEAST_SHARED = 16 << 10  # what Vulkan and OpenCL promise
REGISTERS = 64 << 10  # of 32 bits, of a block: of all NVIDIA GPUs since 2014
BANKS, WORD = 32, 4  # of shared memory, and the bytes that each gives at once


@dataclass(frozen=True)
class Gpu:
    """A GPU: threads that run together, and what a thread block may have at most."""

    warp: int = WARP
    threads: int = 1024
    shared_bytes: int = 48 << 10
    registers: int = REGISTERS

    @property
    def sums(self) -> int:
        """Accumulators that a thread of a full block may hold: a quarter of its registers, as
        addresses and operands take the rest.
        """
        return max(1, self.registers // self.threads // 4)


def is_gpu(target: Target) -> bool:
    """Whether a target's kernels run in blocks of threads."""
    return "gpu" in [str(key) for key in target.keys]


def gpu(target: Target) -> Gpu:
    """The GPU that a target describes."""
    data = target_dict(target)
    kind = str(data["kind"])
    named = [data.get("max_threads_per_block"), data.get("max_num_threads")]
    warp = int(data.get("thread_warp_size") or 1)
    return Gpu(
        warp=warp if warp > 1 else WARP,
        threads=min([int(n) for n in named if n] or [256]),
        shared_bytes=int(data.get("max_shared_memory_per_block") or SHARED.get(kind, LEAST_SHARED)),
        registers=int(data.get("registers_per_block") or REGISTERS),
    )


def at_once(at: np.ndarray, active: np.ndarray, width: int) -> np.ndarray:
    """How many words of one bank lanes want at once, at worst: by group of lanes that are served
    together, of warps that begin to read or write `width` bytes at the addresses `at` [warp, lane].
    """
    together = WARP // max(1, width // WORD)  # 16 bytes a lane: 8 lanes after 8 lanes
    words = np.where(active, at // WORD, -1).reshape(-1, together)
    words = np.sort(words, 1)
    # Lanes that want the same word get it at once.
    new = (np.diff(words, axis=1, prepend=-1) != 0) & (words >= 0)
    group = np.arange(len(words))[:, None] * BANKS
    counts = np.bincount((group + words % BANKS)[new], minlength=len(words) * BANKS)
    return np.maximum(counts.reshape(-1, BANKS).max(1), 1)
