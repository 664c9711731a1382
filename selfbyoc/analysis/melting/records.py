"""The records of the melting report: a kernel, what it saves, and the whole."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from ...codegen.apply import Level
from ...codegen.info.op_info import OpInfo
from ...errors import InputError
from .allocations import Allocation
from .flops import Arithmetic, by_kind, multiply_adds_of
from .formulas import Formula
from .loop_nest import Nest
from .outside import Outside
from .peak import Peak, Timing
from .placement import Placement, is_melted
from .read_nest import is_whole


@dataclass(frozen=True)
class Intermediate:
    """A value between two ops, as separate ops would pass it on."""

    op: str
    bytes: int
    readers: int

    @property
    def traffic(self) -> int:
        """Written once, and read again by each reader."""
        return self.bytes * (1 + self.readers)


@dataclass(frozen=True)
class KernelReport:
    """One kernel, once for all its equals."""

    symbol: str
    composite: str
    why: str
    count: int  # matches of the model that are this kernel
    roots: tuple[str, ...]
    level: Level
    ops: tuple[OpInfo, ...]
    nest: Nest
    placements: tuple[Placement, ...]
    allocations: tuple[Allocation, ...]
    intermediates: tuple[Intermediate, ...]
    argument_bytes: int  # inputs, weights and outputs
    threads: int
    timing: Timing | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)  # of its symbols; all is of these
    examples: tuple[str, ...] = ()  # those of them that nobody asked for
    formulas: Mapping[str, Formula] = field(default_factory=dict)  # of every size, by property

    def is_melted(self, producer: str, consumer: str) -> bool:
        """Whether one op or stage is computed under a loop of the other, or inlined into it."""
        inlined = () if self.own_compute else tuple(op.name for op in self.ops)
        return is_melted(self.nest, inlined, producer, consumer)

    @property
    def own_compute(self) -> bool:
        """Whether its stages come from one compute for the whole composite."""
        return is_whole(self.ops)

    @property
    def bytes_before(self) -> int:
        """Of all intermediates, as separate ops allocate them."""
        return sum(value.bytes for value in self.intermediates)

    @property
    def bytes_after(self) -> int:
        """Of what the kernel allocates: one copy a thread inside of parallel loops."""
        return sum(buffer.live(self.threads) for buffer in self.allocations)

    @property
    def traffic_before(self) -> int:
        """Bytes of intermediates that separate ops write and read again."""
        return sum(value.traffic for value in self.intermediates)

    @property
    def traffic_after(self) -> int:
        """Bytes of intermediates that still travel, by the rule of `analysis/melting/report.py`."""
        return sum(p.traffic for p in self.placements if p.travels and not p.prepares)

    @property
    def traffic_copies(self) -> int:
        """Bytes of padded and packed copies of inputs that travel. Separate ops make theirs: it is
        not part of what is compared.
        """
        return sum(p.traffic for p in self.placements if p.travels and p.prepares)

    @property
    def flops(self) -> int:
        """Operations that its ops ask for."""
        return sum(row.flops for row in self.arithmetic)

    @property
    def arithmetic(self) -> tuple[Arithmetic, ...]:
        """Operations by kind of op."""
        return by_kind(self.ops)

    @property
    def intensity(self) -> float:
        """Operations for each byte that travels: arguments, and intermediates that still do."""
        moved = self.argument_bytes + self.traffic_after + self.traffic_copies
        return self.flops / max(1, moved)

    @property
    def recompute(self) -> float:
        """The largest factor of a stage: how often its elements are computed."""
        return max((stage.recompute for stage in self.nest.stages), default=1.0)

    @property
    def work(self) -> float | None:
        """Multiply-adds done for each one that the ops ask for: halos and unused lanes included."""
        needed = sum(map(multiply_adds_of, self.ops))
        done = sum(stage.runs * stage.products for stage in self.nest.stages)
        return done / needed if needed and done else None

    def work_of(self, op: str) -> float | None:
        """The same for one op, where its stages carry its name."""
        needed = sum(multiply_adds_of(info) for info in self.ops if info.name == op)
        done = sum(s.runs * s.products for s in self.nest.stages if s.op == op)
        return done / needed if needed and done else None

    @property
    def exact(self) -> bool:
        """Whether all counts are; else they are at most what is said."""
        return all(stage.exact for stage in self.nest.stages)

    def __str__(self) -> str:
        from .text import kernel_text

        return kernel_text(self)


@dataclass(frozen=True)
class Failure:
    """A kernel that could not be analysed, and why."""

    symbol: str
    composite: str
    roots: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class Melting:
    """The report of a module."""

    kernels: tuple[KernelReport, ...]
    failures: tuple[Failure, ...] = ()
    peak: Peak | None = None  # of this machine, when timed
    outside: tuple[Outside, ...] = ()  # what no composite took, when timed

    def kernel(self, name: str) -> KernelReport:
        """The first kernel of this symbol, composite or root op."""
        for kernel in self.kernels:
            if name in (kernel.symbol, kernel.composite, *kernel.roots):
                return kernel
        known = sorted({k.composite for k in self.kernels})
        raise InputError(f"no kernel {name!r}; known composites: {known}")

    def to_json(self) -> str:
        """Everything, and the sums, as JSON."""
        data = {**asdict(self), "sums": [_sums(k) for k in self.kernels]}
        return json.dumps(data, default=repr)  # what op info cannot know is no JSON

    def __str__(self) -> str:
        from .text import text

        return text(self)


def _sums(kernel: KernelReport) -> dict[str, object]:
    names = (
        "symbol", "bytes_before", "bytes_after", "traffic_before", "traffic_after",
        "traffic_copies", "flops", "intensity", "recompute", "work", "exact",
    )  # fmt: skip
    return {name: getattr(kernel, name) for name in names}
