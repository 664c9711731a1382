"""What a record says, seen from the blocks that are still there: the others were inlined."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from ...tvm.types import Expr
from .accesses import Access, Accesses, BlockAccesses
from .index_data import scoped, substituted

Index = tuple[Expr, ...]


def index_of(access: Access, label: str) -> Index | None:
    """The index of an access, its axes named after the block."""
    if access.index is None:
        return None
    return tuple(scoped(expr, label) for expr in access.index)


class Inlined:
    """A record, given the labels of the blocks that are present."""

    def __init__(self, then: Accesses, present: Collection[str]) -> None:
        self.then, self.present = then, present
        self.blocks = {b.label: b for b in then.blocks if b.label}
        self.writer = {a.buffer: b for b in then.blocks for a in b.stores}

    def gone(self, buffer: int) -> BlockAccesses | None:
        """The block that wrote a recorded buffer, if it was inlined."""
        block = self.writer.get(buffer)
        return block if block is not None and block.label not in self.present else None

    def loads(self, block: BlockAccesses) -> Iterator[tuple[int, Index | None]]:
        """The recorded reads of a block, those of inlined producers in their place."""
        for load in block.loads:
            index = index_of(load, block.label)
            gone = self.gone(load.buffer)
            if gone is None:
                yield load.buffer, index
                continue
            store = index_of(gone.stores[0], gone.label) if gone.stores else None
            new = solved(store, index)
            for buffer, inner in self.loads(gone):
                yield buffer, replaced(inner, new)

    def stores(self, block: BlockAccesses) -> Iterator[tuple[int, Index | None]]:
        """The buffer that a block writes, and those of readers that were inlined into it."""
        for store in block.stores[:1]:
            buffer, index = store.buffer, index_of(store, block.label)
            yield buffer, index
            while (following := self.merged(buffer)) is not None:
                load = next(a for a in following.loads if a.buffer == buffer)
                new = solved(index_of(load, following.label), index)
                index = replaced(index_of(following.stores[0], following.label), new)
                buffer = following.stores[0].buffer
                yield buffer, index

    def merged(self, buffer: int) -> BlockAccesses | None:
        """The reader of a recorded buffer that may have been inlined into its producer."""
        readers = [b for b in self.then.blocks if any(a.buffer == buffer for a in b.loads)]
        if len(readers) != 1 or readers[0].label in self.present:
            return None
        return readers[0]

    def merged_loads(self, block: BlockAccesses) -> Iterator[tuple[int, Index | None]]:
        """What readers that were inlined into a block read beside its result."""
        before: tuple[int, Index | None] | None = None
        for buffer, index in self.stores(block):
            if before is not None:
                reader = self.writer[buffer]
                load = next(a for a in reader.loads if a.buffer == before[0])
                new = solved(index_of(load, reader.label), before[1])
                for other, inner in self.loads(reader):
                    if other != before[0]:
                        yield other, replaced(inner, new)
            before = (buffer, index)

    def chain(self, recorded: int) -> Iterator[tuple[int, None]]:
        """Recorded buffers that hold the same elements: of readers inlined into the producer."""
        while (block := self.merged(recorded)) is not None:
            same = [index_of(a, "") for a in (*block.loads, *block.stores) if a.buffer == recorded]
            if index_of(block.stores[0], "") not in same:
                return
            recorded = block.stores[0].buffer
            yield recorded, None

    def are_same(self, one: int, other: int) -> bool:
        """Whether two recorded buffers may be one by now."""
        return other in dict(self.chain(one)) or one in dict(self.chain(other))


def solved(pattern: Index | None, at: Index | None) -> Mapping[str, Expr] | None:
    """The variables of an index made of distinct variables and constants, such that it is `at`."""
    if pattern is None or at is None:
        return None
    names = [p for p in pattern if isinstance(p, str)]
    if len(set(names)) != len(names) or any(isinstance(p, tuple) for p in pattern):
        return None
    return {p: a for p, a in zip(pattern, at, strict=True) if isinstance(p, str)}


def replaced(index: Index | None, new: Mapping[str, Expr] | None) -> Index | None:
    """The index with variables replaced; None if either is not known."""
    if index is None or new is None:
        return None
    return tuple(substituted(expr, new) for expr in index)
