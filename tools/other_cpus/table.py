"""The table of the main kernels: what llvm-mca tells of their hot loops on each CPU."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .cpus import CPU, is_known, llvm_version
from .kernels import MAIN, hot_loops
from .mca import Share, share

GOAL = 0.85


@dataclass(frozen=True)
class Row:
    """A kernel's hot loops on a CPU, each by the name of what it computes; none where this TVM's
    LLVM does not know the CPU.
    """

    kernel: str
    cpu: CPU
    shares: tuple[tuple[str, Share], ...]

    @property
    def cell(self) -> str:
        """Shares in percent; of levels also the instruction and its peak; spills of a loop that has
        some.
        """
        kernel = MAIN[self.kernel]
        missing = len(kernel.loops) - len(self.shares)
        cells = [_cell(found, kernel.is_of_words) for _, found in self.shares]
        return " / ".join(cells + ["no loop"] * missing)

    def record(self) -> dict[str, object]:
        """As JSON."""
        loops = [
            {
                "computes": name, "share": round(found.share, 4), "cycles": found.cycles,
                "multiply_adds": found.loop.multiply_adds, "spills": found.loop.spills,
                "product": found.loop.product.name, "peak": found.peak,
            }
            for name, found in self.shares
        ]  # fmt: skip
        return {"kernel": self.kernel, "cpu": self.cpu.name, "loops": loops}


def rows(kernels: Iterable[str], cpus: Sequence[CPU]) -> Iterable[Row]:
    """Every kernel on every CPU, as they are found."""
    for kernel in kernels:
        for cpu in cpus:
            loops = hot_loops(kernel, cpu.target) if is_known(cpu) else []
            names = MAIN[kernel].loops[: len(loops)]
            found = tuple((n, share(x, cpu)) for n, x in zip(names, loops, strict=True))
            yield Row(kernel, cpu, found)


def markdown(found: Sequence[Row]) -> str:
    """A table of the kernels of floats, and one of those of levels."""
    groups = [[row for row in found if MAIN[row.kernel].is_of_words == of] for of in (False, True)]
    return "\n\n".join(map(_table, filter(None, groups)))


def _table(found: Sequence[Row]) -> str:
    """A line for each CPU, a column for each kernel."""
    kernels = list(dict.fromkeys(row.kernel for row in found))
    cells = {(row.cpu, row.kernel): row.cell for row in found}
    heads = [
        name if MAIN[name].is_of_words else f"{name} ({' / '.join(MAIN[name].loops)})"
        for name in kernels
    ]
    lines = ["| CPU | " + " | ".join(heads) + " |", "|---" * (len(kernels) + 1) + "|"]
    for cpu in dict.fromkeys(row.cpu for row in found):
        if is_known(cpu):
            name = f"{cpu.name}, as {cpu.model}" if cpu.model else cpu.name
            row = [cells[cpu, kernel] for kernel in kernels]
        else:
            name, row = cpu.name, [f"unknown to LLVM {llvm_version()}"] + [""] * (len(kernels) - 1)
        lines.append(f"| {name} | " + " | ".join(row) + " |")
    return "\n".join(lines)


def details(row: Row, with_code: bool) -> str:
    """A line for each loop, and its code."""
    if not row.shares:
        return f"{row.kernel} on {row.cpu.name}: no loop, or a CPU unknown to LLVM {llvm_version()}"
    text = []
    for name, found in row.shares:
        loop = found.loop
        text.append(
            f"{row.kernel} on {row.cpu.name}, {name}: {found.share:.0%} of {found.peak:.1f} "
            f"multiply-adds a cycle by {loop.product.name} "
            f"({loop.multiply_adds} in {found.cycles:.1f} cycles), "
            f"{loop.spills} spills, {len(loop.lines)} instructions, depth {loop.depth}"
        )
        text.extend(f"    {line}" for line in loop.lines if with_code)
    return "\n".join(text)


def _cell(found: Share, is_of_words: bool) -> str:
    loop, percent = found.loop, f"{found.share:.0%}"
    spilled = f" ({loop.spills} spills)" if loop.spills else ""
    shown = percent if found.share >= GOAL else f"**{percent}**"
    return (f"{loop.product.name} {shown} of {found.peak:.0f}" if is_of_words else shown) + spilled
