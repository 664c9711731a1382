"""What a plan needs to know of a GPU, as one value made from the target.

TVM's targets say some of it; what one does not say is what every device of its kind has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ._tvm import target_dict

WARP = 32  # where a target names none (OpenCL, Vulkan: 1): rows are then summed in shared memory
SHARED = {"cuda": 48 << 10, "rocm": 64 << 10}  # of a block, without asking the driver for more
LEAST_SHARED = 16 << 10  # what Vulkan and OpenCL promise
REGISTERS = 64 << 10  # of 32 bits, of a block: of all NVIDIA GPUs since 2014


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


def is_gpu(target: Any) -> bool:
    """Whether a target's kernels run in blocks of threads."""
    return "gpu" in [str(key) for key in target.keys]


def gpu(target: Any) -> Gpu:
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
