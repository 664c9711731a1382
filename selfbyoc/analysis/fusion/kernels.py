"""What FuseOps left: kernels of ops, and the values that go from one kernel to another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Made: TypeAlias = Any  # an op, a list of what a tuple is of, None of no op


@dataclass(frozen=True)
class FusedOp:
    """An op as TVM's fusion sees it: its name, its pattern kind, and the kernel that it is in."""

    name: str
    kind: str
    kernel: int

    def __str__(self) -> str:
        return f"{self.name} ({self.kind})"


@dataclass
class Fused:
    """The ops of a fused program in order, and the pairs of neighbours in different kernels."""

    ops: list[FusedOp] = field(default_factory=list)
    apart: list[tuple[FusedOp, FusedOp]] = field(default_factory=list)
    kernels: int = 0

    def begin(self) -> int:
        """A new kernel."""
        self.kernels += 1
        return self.kernels - 1

    def call(self, name: str, kind: str, kernel: int, args: Made) -> FusedOp:
        """An op that reads `args`: ops, None for what no op computes, lists of both."""
        made = FusedOp(name, kind, kernel)
        self.ops.append(made)
        self.apart += [(read, made) for read in _ops(args) if read.kernel != kernel]
        return made

    def of(self, kernel: int) -> list[FusedOp]:
        """The ops of a kernel in order."""
        return [op for op in self.ops if op.kernel == kernel]


def element(value: Made, index: int) -> Made:
    """One of a tuple; an op of several results is one op."""
    return value[index] if isinstance(value, list) else value


def _ops(args: Made) -> Iterator[FusedOp]:
    if isinstance(args, list):
        for arg in args:
            yield from _ops(arg)
    elif args is not None:
        yield args
