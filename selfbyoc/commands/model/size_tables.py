"""The open sizes of a model or a library: where they are, between what, and who says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rich.table import Table

from ...ir.symbols import Range
from ...runtime.interface import bounded_by, least_sizes, sizes_of
from ...runtime.signature import Tensor
from ...runtime.sizes import Size
from ...tvm.types import IRModule
from ..console import PlainTable


@dataclass(frozen=True)
class OpenSizes:
    """By name, as a library has them."""

    sizes: Mapping[str, Size] = field(default_factory=dict)
    least: Mapping[str, int] = field(default_factory=dict)
    by: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, mod: IRModule) -> OpenSizes:
        """Those of a module."""
        return cls(sizes_of(mod), least_sizes(mod), bounded_by(mod))

    def range_of(self, name: str) -> str:
        """`1..512`; of a size that follows from others, that it does."""
        if not name.isidentifier():
            return "follows"
        return str(Range(self.least.get(name, 0), self.sizes[name][0]))


def size_table(found: OpenSizes, inputs: Sequence[Tensor]) -> Table:
    """One row a size."""
    table = PlainTable(
        title="\nopen sizes", title_justify="left", title_style="bold", show_edge=False,
        pad_edge=False,
    )  # fmt: skip
    for header in ("size", "range", "where", "bounded by"):
        table.add_column(header, overflow="fold")
    for name, (_, places) in found.sizes.items():
        table.add_row(name, found.range_of(name), _where(places, inputs), found.by.get(name, ""))
    return table


def _where(places: Sequence[tuple[int, int]], inputs: Sequence[Tensor]) -> str:
    """`axis 1 of ids, mask; axis 0 of x`."""
    by_axis: dict[int, list[str]] = {}
    for position, axis in places:
        by_axis.setdefault(axis, []).append(inputs[position][0])
    return "; ".join(f"axis {axis} of {', '.join(names)}" for axis, names in by_axis.items())
