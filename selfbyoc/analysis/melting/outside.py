"""The functions outside of all kernels: what they move, how often they run, and how fast."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...ops.cost import item_bytes
from ...runtime.generation import runtime
from ...tvm import param_buffers
from ...tvm.types import IRModule, PrimFunc, Target
from .peak import Peak, Timing, timing
from .triad import Bandwidth


@dataclass(frozen=True)
class Outside:
    """A function that TVM made of ops that no composite took."""

    name: str
    calls: int
    bytes: int  # of its arguments and results, one call
    unscheduled: str = ""  # why it is left as TVM lowered it; empty: it has our default schedule
    timing: Timing | None = None  # None: extents are not known, or it cannot run alone
    bandwidth: float = 0.0  # GB/s of a triad of as many bytes

    @property
    def milliseconds(self) -> float:
        """Of all calls."""
        return self.calls * self.timing.milliseconds if self.timing else 0.0

    @property
    def rate(self) -> float:
        """GB/s that it moves."""
        return 1e-6 * self.bytes / self.timing.milliseconds if self.timing else 0.0

    @property
    def share(self) -> float:
        """Of the bandwidth; more than all for one that reads little of what it is given."""
        return self.rate / self.bandwidth if self.bandwidth else 0.0

    @property
    def limit(self) -> tuple[float, str]:
        """The share of what it comes nearest to: memory's bandwidth, or the peak of operations."""
        of_peak = (self.timing.of_peak if self.timing else None) or 0.0
        return max((self.share, "memory"), (of_peak, "peak"))


def outside(
    mod: IRModule, target: Target, peak: Peak, sizes: Mapping[str, int]
) -> tuple[Outside, ...]:
    """Each of them timed alone, at these sizes of symbols, the slowest first. None on Relay, where
    TOPI schedules them.
    """
    memory = Bandwidth(target)
    every = runtime.functions_outside(mod, target, sizes)
    found = [_timed(*each, target, peak, memory) for each in every]
    return tuple(sorted(found, key=lambda each: -each.milliseconds))


def _timed(
    name: str,
    func: PrimFunc,
    flops: int,
    calls: int,
    why: str,
    target: Target,
    peak: Peak,
    memory: Bandwidth,
) -> Outside:
    shapes = [getattr(buffer, "shape", None) for buffer in param_buffers(func)]
    if not all(s is not None and all(hasattr(e, "value") for e in s) for s in shapes):
        return Outside(name, calls, 0, why)
    moved = sum(
        math.prod(int(e) for e in buffer.shape) * item_bytes(str(buffer.dtype))
        for buffer in param_buffers(func)
    )
    return Outside(name, calls, moved, why, timing(func, target, flops, peak), memory.at(moved))


def text(found: Sequence[Outside], kernels: float) -> list[str]:
    """Lines of the report; `kernels` is the time of all kernels."""
    total = sum(each.milliseconds for each in found)
    lines = [
        f"Outside of the kernels: {len(found)} functions, {total:.3f} ms of "
        f"{total + kernels:.3f} ({total / ((total + kernels) or 1):.0%})"
    ]
    for each in found:
        share, of = each.limit
        lines.append(
            f"  {each.name[:36]:36} {each.calls:3} x {1e-6 * each.bytes:8.3f} MB "
            f"{each.milliseconds:8.3f} ms {each.rate:6.1f} GB/s {share:4.0%} of {of}"
        )
        if each.unscheduled:
            lines.append(f"    left as TVM lowered it: {each.unscheduled}")
    return lines
