"""How a chain is cut into thread blocks, and each block's work among its threads."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...machine.gpu import Gpu
from ...tvm import region_buffer
from .chain import COLUMN, EACH, PRODUCT, ROW, Chain, NoChain, Stage, is_operand, operands, plain

MOST_ROWS = (64, 32, 16, 8, 4, 2, 1)
FEW_BLOCKS = 48  # less leave multiprocessors idle, 40 to 140 of them; no target says how many
FEW_ROWS = 4  # with less, what is fetched serves too few
LONG_ROW = 1024  # elements from which more than a warp shares a row
SIDES = (1, 2, 4)  # of a register tile


@dataclass(frozen=True)
class Shape:
    """What of a product may be in shared memory at once: columns of a thread, and terms: the first
    number that divides them, else the first. 16 are half a line of 128 bytes.
    """

    wide: Sequence[int]
    chunks: Sequence[int]


WIDE, NARROW = Shape(SIDES, (16, 32, 20, 12, 24, 8)), Shape((1,), (8, 5, 4))
SUMS = (PRODUCT, COLUMN)  # stages that sum in registers


@dataclass(frozen=True)
class Tile:
    """A product's rows and columns among threads: `down` x `across` of them, each with a register
    tile of `high` x `wide` sums; `passes` of them for all columns.
    """

    down: int
    across: int
    high: int
    wide: int
    passes: int
    chunk: int

    @property
    def columns(self) -> int:
        """Of one pass."""
        return self.across * self.wide

    def __str__(self) -> str:
        times = f", {self.passes} times" if self.passes > 1 else ""
        return (
            f"{self.down} x {self.across} threads of {self.high} x {self.wide} sums, "
            f"{self.chunk} terms at a time{times}"
        )


@dataclass(frozen=True)
class BlockPlan:
    """Thread blocks of `rows` rows, with `groups` x `lanes` threads: the lanes share a row."""

    rows: int
    groups: int
    lanes: int
    tiles: Mapping[str, Tile]
    columns: int = 0  # of the result; 0: a block has all of them
    keeps: bool = True  # stages in shared memory; else their readers compute them again
    shared_bytes: int = 0

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.groups * self.lanes

    def __str__(self) -> str:
        whole = f"{self.rows} rows" + (f" and {self.columns} columns" if self.columns else "")
        tiles = "".join(f"; {name}: {tile}" for name, tile in self.tiles.items())
        return (
            f"one kernel; thread blocks of {whole}, {self.groups} x {self.lanes} threads, "
            f"{math.ceil(self.shared_bytes / 1024)} KB of shared memory{tiles}"
        )


def block_plan(chain: Chain, gpu: Gpu) -> BlockPlan:
    """The largest blocks that fit and leave enough of them. Raises NoChain where none fits."""
    plans = list(_candidates(chain, gpu))
    fitting = [plan for plan in plans if plan.shared_bytes <= gpu.shared_bytes]
    if not fitting:
        least = min(plan.shared_bytes for plan in plans)
        raise NoChain(
            f"one row takes {least} bytes of shared memory, and a thread block has "
            f"{gpu.shared_bytes}"
        )
    enough = [p for p in fitting if p.rows <= FEW_ROWS or _blocks(chain, p) >= FEW_BLOCKS]
    return (enough or fitting)[0]


def _candidates(chain: Chain, gpu: Gpu) -> Iterator[BlockPlan]:
    """Plans, larger blocks first."""
    extent = chain.extent(chain.tiled)
    if not chain.of(PRODUCT):
        yield from _of_rows(chain, gpu)
        return
    apart = _apart(chain)
    most = 64 if apart else 32  # a chain's rows lie in shared memory whole
    sizes = [r for r in MOST_ROWS if r <= min(most, _power(extent))]
    for rows, shape in itertools.product(sizes, (WIDE, NARROW)):
        threads = min(gpu.threads, 256 if rows >= 32 else 128)
        groups = max(1, min(rows, threads // gpu.warp))
        tiles = {s.name: _tile(s, rows, threads, shape, gpu) for s in chain.of(PRODUCT)}
        if apart:  # other blocks have the other passes
            tiles[apart.name] = replace(tiles[apart.name], passes=1)
        columns = tiles[apart.name].columns if apart else 0
        plan = BlockPlan(rows, groups, threads // groups, tiles, columns)
        yield _counted(chain, plan)


def _apart(chain: Chain) -> Stage | None:
    """The one product, if blocks may share out its columns: they alone are the result's, and what
    is before is little beside it.
    """
    products = chain.of(PRODUCT)
    if len(products) > 1 or len(products[0].columns) > 1:
        return None
    return products[0] if follows(chain, products[0]) else None


def follows(chain: Chain, product: Stage) -> bool:
    """Whether a product, or what is elementwise after it, is the result."""
    readers = {reader.name for reader in product.block.consumers}
    return product.block.is_output or (readers == {chain.result.name} and chain.result.kind == EACH)


def _of_rows(chain: Chain, gpu: Gpu) -> Iterator[BlockPlan]:
    """Without a product: each row to the lanes of one warp, or of several if it is long."""
    width = max((s.depth if s.kind == ROW else s.width) for s in chain.stages)
    lanes = min(gpu.threads, max(gpu.warp, _power(width // 8) if width >= LONG_ROW else 0, 1))
    groups = max(1, min(128 // lanes, _power(chain.extent(chain.tiled))))
    for keeps in (True, False):
        yield _counted(chain, BlockPlan(groups, groups, lanes, {}, 0, keeps))


def _power(extent: int) -> int:
    """The next power of two."""
    return 1 << max(0, extent - 1).bit_length()


def _blocks(chain: Chain, plan: BlockPlan) -> int:
    rows = math.prod(chain.extent(n) for n in chain.rows if n != chain.tiled)
    rows *= math.ceil(chain.extent(chain.tiled) / plan.rows)
    return rows * (math.ceil(chain.result.width / plan.columns) if plan.columns else 1)


def _tile(stage: Stage, rows: int, threads: int, shape: Shape, gpu: Gpu) -> Tile:
    """The tile that takes least: a step of a sum loads `high + wide` and adds their product."""
    columns, depth = stage.columns[-1].extent, stage.depth
    chunk = next((n for n in shape.chunks if depth % n == 0), shape.chunks[0])
    found = []
    for high in (h for h in SIDES if h <= rows and rows // h <= threads):
        across = threads * high // rows
        for wide in (w for w in shape.wide if w * high <= gpu.sums):
            passes = math.ceil(columns / (across * wide))
            cost = passes * (high * wide + high + wide)
            tile = Tile(rows // high, across, high, wide, passes, min(chunk, depth))
            found.append((cost, passes, tile))
    return min(found, key=lambda f: f[:2])[2]


def _counted(chain: Chain, plan: BlockPlan) -> BlockPlan:
    """The plan with what it takes of shared memory, before buffers share any."""
    elsewhere = epilogues(chain.stages).keys() | fetches(chain)
    kept = sum(_kept(chain, s, plan) for s in chain.stages if s.name not in elsewhere)
    fetched = max((_fetched(chain, s, plan) for s in chain.of(PRODUCT)), default=0)
    size = kept + fetched + 4 * plan.threads  # sums on their way between threads
    return replace(plan, shared_bytes=size)


def fetches(chain: Chain) -> set[str]:
    """The stages that a product fetches as they are computed, a chunk at a time: it alone reads
    them, and they take no sums from registers.
    """
    kinds = {s.name: s.kind for s in chain.stages}
    taking = epilogues(chain.stages).values()
    return {
        s.name
        for s in chain.stages
        if s.kind == EACH and s.name not in taking and not s.block.is_output
        if [kinds[reader.name] for reader in s.block.consumers] == [PRODUCT]
    }


def is_again(stage: Stage, plan: BlockPlan) -> bool:
    """Whether its readers compute it again."""
    return not plan.keeps and stage.kind == EACH and not stage.block.is_output


def _kept(chain: Chain, stage: Stage, plan: BlockPlan) -> int:
    """Bytes of the rows of a stage."""
    if stage.block.is_output or is_again(stage, plan):
        return 0
    rows = plan.rows if chain.tiled_axis(stage) else 1
    return rows * (stage.width + 1) * _bytes(stage.block.dtype)


def _fetched(chain: Chain, stage: Stage, plan: BlockPlan) -> int:
    """Bytes of the operands of a product at once."""
    tile = plan.tiles[stage.name]
    each = _bytes(stage.block.dtype) * tile.chunk
    return each * (tile.columns + 1 + (plan.rows + 1) * reads_anew(stage, chain))


def reads_anew(stage: Stage, chain: Chain) -> bool:
    """Whether a product's rows are fetched too, and not in shared memory already."""
    kept = {s.name for s in chain.stages} - fetches(chain)
    return not any(p.name in kept and not is_operand(p) for p in stage.block.producers)


def _bytes(dtype: str) -> int:
    return max(1, int("".join(c for c in dtype if c.isdigit()) or 32) // 8)


def epilogues(stages: Sequence[Stage]) -> dict[str, str]:
    """The stages whose sums stay in registers, each with the block that takes them from there, one
    such stage for each block.
    """
    found: dict[str, str] = {}
    for stage in stages:
        reader = _epilogue_of(stage) if stage.kind in SUMS else None
        if reader is not None and reader not in found.values():
            found[stage.name] = reader
    return found


def _epilogue_of(stage: Stage) -> str | None:
    """The block that reads a product's sums, each one once, and can take them from registers."""
    readers = stage.block.consumers
    if len(readers) != 1 or readers[0].reduction or readers[0].size != stage.block.size:
        return None
    (reader,) = readers
    own = region_buffer(stage.block.stmt.writes[0])
    for buffer, indices in operands(reader).items():
        if not buffer.same_as(own):
            continue
        wide = [i for i in indices if not hasattr(i, "value")]  # the others are constants
        axes = {axis.position for i in wide if (axis := plain(i, reader))}
        return reader.name if len(axes) == len(wide) else None
    return None
