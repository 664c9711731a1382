"""Where elements lie in shared memory: so that lanes which read or write at once meet different
banks. Nothing is known here of what a stage is: the lanes' elements are counted, by bank.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, prod

import numpy as np

from ...machine.gpu import BANKS, WORD, at_once
from ...tvm import region_buffer
from ...tvm.types import Buffer, PrimExpr, Schedule
from ..steps.blocks import Facts, facts
from .lanes import Use, Wanted, memory, uses
from .plan import BlockPlan

LITTLE = 4 << 10  # bytes for distances that any buffer may have; a larger one a quarter of it


@dataclass(frozen=True)
class Columns:
    """Which dimension lanes take several neighbours along, how many each, and after how many
    columns of all lanes they begin again.
    """

    dim: int
    wide: int
    period: int

    @property
    def across(self) -> int:
        """Columns of a line at least."""
        return ceil(self.period / self.wide)

    def of(self, buffer: Buffer) -> Columns:
        """The same of a buffer that may have fewer."""
        return replace(self, period=min(self.period, int(buffer.shape[self.dim])))


@dataclass(frozen=True)
class Layout:
    """Columns of one lane a `line` apart (no `columns`: as they were); rows a `stride`."""

    wanted: Wanted
    shape: Sequence[int]
    stride: int
    columns: Columns | None = None
    line: int = 0

    @property
    def elements(self) -> int:
        """That it takes, those between rows too."""
        return prod(self.shape[:-1]) * self.stride

    def conflicts(self, width: int) -> float:
        """Steps that all warps wait for banks, of elements of `width` bytes."""
        at, distance = np.zeros_like(self.wanted.index[0]), 1
        for index, extent in zip(
            reversed(self.wanted.index), reversed([*self.shape[:-1], self.stride]), strict=True
        ):
            at, distance = at + index * distance, distance * extent
        steps = at_once(at * width, self.wanted.active, width).reshape(len(at), -1) - 1
        return float((steps.sum(1) * self.wanted.weight).sum())


def lay_out(sch: Schedule, plan: BlockPlan, fetched: Mapping[str, Columns], most: int) -> None:
    """Give each buffer in shared memory the layout with the fewest conflicts, of those the
    smallest. `fetched` says how products read what they fetch; a block may have `most` bytes.
    """
    used = uses(sch, plan)
    # The plan counts all buffers, and TVM lets some share memory: most of what that leaves.
    spare = max(most - plan.shared_bytes, (most - memory(used.values())) * 3 // 4)
    layouts: dict[Use, Layout] = {}
    for block in facts(sch):
        buffer = region_buffer(block.stmt.writes[0])
        # Not sums among threads: TVM would pad their registers too.
        if buffer not in used or block.reduction:
            continue
        use = used[buffer]
        if use not in layouts:
            known = fetched.get(block.name)
            columns = [known.of(buffer)] if known else _columns(buffer, use, plan)
            layout = _best(use, columns, spare)
            spare -= layout.elements * use.width - use.size
            layouts[use] = layout
        _set(sch, block, layouts[use], use.width)


def _columns(buffer: Buffer, use: Use, plan: BlockPlan) -> list[Columns]:
    """How lanes may take several columns of what a stage has kept."""
    whole = int(buffer.shape[-1])
    some = plan.columns and use.wanted.shape[-1] < whole  # those of one thread block
    wides = sorted({tile.wide for tile in plan.tiles.values()} - {1})
    last = len(buffer.shape) - 1
    return [Columns(last, wide, plan.columns if some else whole) for wide in wides if whole > 1]


def _best(use: Use, columns: Sequence[Columns], spare: int) -> Layout:
    """The smallest of the layouts with the fewest conflicts."""
    most = use.size + min(spare, max(LITTLE, use.size // 4))
    best, *layouts = sorted(_layouts(use, columns), key=lambda layout: layout.elements)
    least = best.conflicts(use.width)
    for layout in layouts:
        if not least or layout.elements * use.width > most:
            break
        conflicts = layout.conflicts(use.width)
        if conflicts < least:
            best, least = layout, conflicts
    return best


def _layouts(use: Use, columns: Sequence[Columns]) -> Iterator[Layout]:
    word, found = max(1, WORD // use.width), use.wanted
    lines: list[tuple[Wanted, Columns | None, int]] = [(found, None, 0)]
    for each in columns:
        few = BANKS // each.wide * word  # so many more, or a multiple of those: the rest repeats
        whole = range(ceil(each.across / few) * few, each.across + BANKS * word, few)
        for line in (*range(each.across, each.across + few), *whole):
            index = _in_lines(found.index, each, line)
            lines.append((replace(found, index=index), each, line))
    for wanted, apart, line in lines:
        shape = wanted.shape
        first = ceil(shape[-1] / word) * word
        for stride in sorted({shape[-1], *range(first, first + BANKS * word, word)}):
            yield Layout(wanted, shape, stride, apart, line)


def _in_lines(index: Sequence[np.ndarray], columns: Columns, line: int) -> list[PrimExpr]:
    """The indices of an element once the columns of each lane are a line apart."""
    rest = [i for n, i in enumerate(index) if n != columns.dim]
    turn, at = index[columns.dim] // columns.period, index[columns.dim] % columns.period
    return [turn, *rest, at % columns.wide * line + at // columns.wide]


def _set(sch: Schedule, block: Facts, layout: Layout, width: int) -> None:
    columns = layout.columns
    if columns is not None:
        sch.transform_layout(
            block.block,
            ("write", 0),
            lambda *index: _in_lines(index, columns, layout.line),
            assume_injective_transform=True,
        )
    if prod(layout.shape[:-1]) > 1:
        whole = BANKS * max(1, WORD // width)
        dim = len(layout.shape) - 2
        sch.storage_align(block.block, 0, dim, whole, layout.stride % whole)
