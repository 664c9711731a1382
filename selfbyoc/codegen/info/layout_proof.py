"""Which layout each recorded buffer has now: proved from how the blocks index it, or not known.

A block that still has the axes it was recorded with (their names are kept by every primitive but
those that change what an axis means) reads each buffer at an index that we know from the record.
What it reads at now, as a function of the same axes, is the layout. Copies that a cache made and
blocks that were inlined are seen through. A buffer that no such access speaks for is not known, nor
is one whose accesses disagree.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...tvm.types import Expr
from .accesses import Accesses, BlockAccesses, Extent
from .layout_map import LayoutMap, Pair, Prover, infer
from .layout_record import Index, Inlined, index_of, replaced
from .unknown import UNKNOWN

# transform_block_layout names the new axes v0, v1, ...: recorded axes of such names prove nothing.
_RENAMED = re.compile(r"v\d+\Z")


@dataclass(frozen=True)
class Place:
    """A buffer as it was recorded, and its map to the present layout (None: not known)."""

    layout: LayoutMap | None
    present: tuple[Extent, ...] | None = None  # the present shape, where the buffer is known
    dtype: Any = None  # another one than recorded, or UNKNOWN


def places(then: Accesses, now: Accesses) -> dict[int, Place]:
    """Recorded buffer -> where it is now."""
    return _Proof(then, now).result()


class _Proof:
    """Collects what each access says, and what cannot be explained."""

    def __init__(self, then: Accesses, now: Accesses) -> None:
        self.now = now
        self.then = Inlined(then, {b.label for b in now.blocks if b.label})
        self.recorded = self.then.blocks
        self.shapes, self.params, self.dtypes = then.shapes, then.params, then.dtypes
        self.prover = Prover({f"{b.label}/{n}": e for b in then.blocks for n, e, _ in b.axes})
        self.copies = self._copies()
        # Present buffers that a known block accesses in a way that the record does not explain.
        self.tainted: set[int] = set()
        self.stands_for = dict(zip(now.params, then.params, strict=False))
        self.pairs: dict[tuple[int, int], list[Pair]] = {}  # (recorded, present) -> evidence

    def result(self) -> dict[int, Place]:
        known = [block for block in self.now.blocks if self._is_known(block)]
        for block in known:
            self._stores(block.label, block)
        for block in known:
            self._loads(block.label, block)
        return self._places()

    def _copies(self) -> dict[int, BlockAccesses]:
        """Present buffer -> the one block that copies something into it."""
        writers: dict[int, list[BlockAccesses]] = {}
        for block in self.now.blocks:
            for store in block.stores:
                writers.setdefault(store.buffer, []).append(block)
        return {
            buffer: blocks[0]
            for buffer, blocks in writers.items()
            if len(blocks) == 1 and blocks[0].copies and not blocks[0].label
        }

    def _is_known(self, block: BlockAccesses) -> bool:
        """Whether its axes mean what they meant when they were recorded."""
        recorded = self.recorded.get(block.label)
        return (
            recorded is not None
            and block.is_leaf
            and set(block.axes) <= set(recorded.axes)
            and len({name for name, _, _ in recorded.axes}) == len(recorded.axes)
            and not any(_RENAMED.match(name) for name, _, _ in recorded.axes)
        )

    # What the present function says.

    def _stores(self, label: str, block: BlockAccesses) -> None:
        """Which recorded buffer it writes into which present one, copies after it included."""
        recorded = list(self.then.stores(self.recorded[label]))
        for store in block.stores:
            found = index_of(store, label)
            wanted = self.stands_for.get(store.buffer)
            pair = next((r for r in recorded if wanted is None or r[0] == wanted), None)
            if pair is None or pair[1] is None or found is None:
                self.tainted.add(store.buffer)
                continue
            self._evidence(pair[0], store.buffer, (pair[1], found))
            self._follow(pair[0], store.buffer, (pair[1], found))

    def _follow(self, recorded: int, buffer: int, pair: Pair) -> None:
        """The same value where it is copied to."""
        for target, copy in self.copies.items():
            if copy.loads[0].buffer != buffer:
                continue
            read, written = copy.loads[0].index, copy.stores[0].index
            if read is None or written is None:
                continue
            moved = replaced(written, self._unknowns(copy, read, buffer, pair[1]))
            if moved is None:
                self.tainted.add(target)
                continue
            wanted = self.stands_for.get(target, recorded)
            if wanted != recorded and not self.then.are_same(wanted, recorded):
                self.tainted.add(target)
                continue
            self._evidence(wanted, target, (pair[0], moved))
            self._follow(wanted, target, (pair[0], moved))

    def _unknowns(
        self, copy: BlockAccesses, index: Index, buffer: int, at: Index
    ) -> Mapping[str, Expr] | None:
        """The copy's axes such that it accesses `buffer` at `at`."""
        axes: Index = tuple(name for name, _, _ in copy.axes)
        extents = tuple(extent for _, extent, _ in copy.axes)
        if set(index) == set(axes) and len(index) == len(axes):
            return dict(zip(index, at, strict=True))
        prover = Prover({name: extent for name, extent, _ in copy.axes})
        layout = infer([(axes, index)], extents, self.now.shapes[buffer], prover)
        if layout is None:
            return None
        return dict(zip(axes, layout.inverse(at), strict=True))

    def _evidence(self, recorded: int, present: int, pair: Pair) -> None:
        self.stands_for.setdefault(present, recorded)
        self.pairs.setdefault((recorded, present), []).append(pair)

    def _loads(self, label: str, block: BlockAccesses) -> None:
        recorded: dict[int, list[Index | None]] = {}
        for buffer, index in [
            *self.then.loads(self.recorded[label]),
            *self.then.merged_loads(self.recorded[label]),
        ]:
            recorded.setdefault(buffer, []).append(index)
        reads = [self._source(load.buffer, index_of(load, label)) for load in block.loads]
        self._name_unwritten({source for source, _ in reads}, set(recorded))
        found: dict[int, list[tuple[int, Index | None]]] = {}
        for source, index in reads:
            wanted = self._recorded_as(source, recorded)
            if wanted is not None:
                found.setdefault(wanted, []).append((source, index))
        for buffer, same in found.items():
            self._pair(buffer, recorded[buffer], same)

    def _name_unwritten(self, sources: set[int], recorded: set[int]) -> None:
        """One buffer whose writer is not known any more is the one recorded buffer left over."""
        nameless = [b for b in sources if b not in self.stands_for]
        left = [b for b in recorded if b not in self.stands_for.values()]
        if len(nameless) != 1 or len(left) != 1:
            return
        writer = self.then.writer.get(left[0])
        written = [b for b in self.now.blocks if any(a.buffer == nameless[0] for a in b.stores)]
        if writer is not None and any(b.label == writer.label for b in written):
            self.stands_for[nameless[0]] = left[0]

    def _recorded_as(self, source: int, recorded: Mapping[int, object]) -> int | None:
        """The recorded buffer that a block's read is of, through readers merged into its writer."""
        wanted = self.stands_for.get(source)
        if wanted is None or wanted in recorded:
            return wanted
        return next((b for b in recorded if self.then.are_same(b, wanted)), None)

    def _source(self, buffer: int, index: Index | None) -> tuple[int, Index | None]:
        """A read of a copy as the read of what was copied."""
        seen = {buffer}
        while index is not None and buffer in self.copies and buffer not in self.now.params:
            copy = self.copies[buffer]
            read, written = copy.loads[0].index, copy.stores[0].index
            if read is None or written is None or copy.loads[0].buffer in seen:
                return buffer, None
            index = replaced(read, self._unknowns(copy, written, buffer, index))
            buffer = copy.loads[0].buffer
            seen.add(buffer)
        return buffer, index

    def _pair(
        self, buffer: int, was: list[Index | None], reads: list[tuple[int, Index | None]]
    ) -> None:
        """Recorded and present reads one by one, in order; all alike need no order."""
        if len(set(was)) == 1:
            was = was[:1] * len(reads)
        complete = len(was) == len(reads)
        for old, (source, new) in zip(was, reads, strict=False):
            if old is None or new is None or not complete:
                self.tainted.add(source)
            else:
                self._evidence(buffer, source, (old, new))

    # The verdict.

    def _places(self) -> dict[int, Place]:
        param = dict(zip(self.params, self.now.params, strict=False))
        self.found: dict[int, Place] = {}
        for buffer, shape in enumerate(self.shapes):
            held = [self._place(buffer, b) for t, b in self.pairs if t == buffer]
            if buffer in param:
                self.found[buffer] = self._place(buffer, param[buffer])
            elif held:
                self.found[buffer] = _one_of(held, len(shape))
        return {buffer: self._typed(self._value(buffer)) for buffer in range(len(self.shapes))}

    def _typed(self, place: Place) -> Place:
        """A value that no present buffer is known to hold may be in any dtype that is new here."""
        is_new = place.present is None and not set(self.now.dtypes) <= set(self.dtypes)
        return replace(place, dtype=UNKNOWN) if is_new else place

    def _value(self, buffer: int) -> Place:
        """Of a buffer that is gone: the layout of what its values are computed from, in place."""
        if buffer in self.found:
            return self.found[buffer]
        merged = next((b for b, _ in self.then.chain(buffer) if b in self.found), None)
        if merged is not None:
            return Place(self.found[merged].layout)
        gone = self.then.gone(buffer)
        if gone is None or not gone.stores:
            return Place(None)
        in_place = [a.buffer for a in gone.loads if a.index == gone.stores[0].index]
        layouts = {self._value(b).layout for b in in_place or [a.buffer for a in gone.loads]}
        if len(layouts) == 1 and in_place:
            return Place(layouts.pop())
        unchanged = all(layout is not None and layout.is_identity for layout in layouts)
        return Place(LayoutMap.identity(len(self.shapes[buffer])) if unchanged else None)

    def _place(self, recorded: int, present: int) -> Place:
        shape, dtype = self.now.shapes[present], self.now.dtypes[present]
        other = None if dtype == self.dtypes[recorded] else dtype
        pairs = self.pairs.get((recorded, present), [])
        if present in self.tainted or not pairs:
            return Place(None, shape, other)
        return Place(infer(pairs, self.shapes[recorded], shape, self.prover), shape, other)


def _one_of(held: list[Place], ndim: int) -> Place:
    """Of the copies of a value, one in the original layout is where the other ops read it."""
    whole = next((p for p in held if p.layout == LayoutMap.identity(ndim)), None)
    if whole is not None:
        return whole
    kinds = {p.layout for p in held}
    return held[0] if len(kinds) == 1 else Place(None)
