"""Of a batch, some images after the others.

Most kernels of a batch do the same for each image. Where all cores share an image, and its weights
wait in a cache for the next one, several at once gain little: such a kernel is scheduled for one
image, and for as many as there are cores. Where an image is too little for all cores, each of them
takes one. No examples of batches, no functions of their own for a few of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ...errors import SymbolicError
from ...graph import OpGraph, Symbol, Value
from ...machine import Machine, machine
from ...machine.gpu import is_gpu
from ...ops.cost import cost_of, item_bytes
from ...tvm import tir
from ...tvm.rewrite import map_loops, with_body
from ...tvm.types import PrimFunc, Stmt, Target
from ..external import External, match_of, packed_params
from .alike import IMAGES, is_each_alike
from .maker import Maker

USUAL = 64  # size of other symbols
LEAST_CYCLES = 1 << 16  # of an image on all cores: of less, launching regions is too large a part
LEAST_OF_A_CORE = 1 << 13  # of an image on one core: of less, calling a function is
LEAST_AT_ONCE = 1 << 13  # of images on all cores, each of which takes one
# Reading the weights once more, of the time of an image: where they stay near, where groups of
# several images make up for it, and where only a batch as a whole does.
NEAR, FAR = 0.25, 1.5
LARGE_GROUPS = (1, 2, 3, 4, 6)
SERIAL, PARALLEL = 0, 1  # tir.ForKind


@dataclass(frozen=True)
class Group:
    """Images that a function takes at a time; or of one image, by each core: rounds of so many."""

    images: int
    side_by_side: int = 0


@dataclass(frozen=True)
class Grouped:
    """A kernel that takes a batch in groups: the symbol that counts images, the groups, one image
    first, and how many images are enough to have each core take one.
    """

    symbol: str
    groups: tuple[Group, ...]
    enough: int = 0

    def of(self, source: External, size: int) -> External:
        """The kernel of one group, without the symbol."""
        symbol, read = self.symbol, source.read_at
        assert read is not None, "it has symbols"
        others = tuple(name for name in source.symbols if name != symbol)
        sizes = {name: source.sizes[name] for name in others}
        one = replace(
            source, graph=read({**sizes, symbol: size}), symbols=others, sizes=sizes,
            read_at=lambda at: read({n: {symbol: size, **at}[n] for n in source.symbols}),
        )  # fmt: skip
        return one if others else replace(one, read_at=None)

    @property
    def first(self) -> dict[int, int]:
        """Of so many images that are left the number of the next group: of the fewest groups the
        evenest. Of more than it names, the last.
        """
        if self.enough:
            return {self.enough - 1: 0}
        best: dict[int, tuple[int, ...]] = {0: ()}
        sizes = [group.images for group in self.groups]
        for left in range(1, 2 * sizes[-1] + 1):
            ways = ((n, *best[left - n]) for n in sizes if n <= left)
            best[left] = max(ways, key=lambda way: (-len(way), min(way)))
        return {left: sizes.index(max(way)) for left, way in best.items() if way}


def grouped(maker: Maker) -> Grouped | None:
    """How a batch is taken in groups of images, where that serves as well as a kernel of whole
    batches; None where it does not, or nothing is an image.
    """
    source = maker.source
    symbol = _counted(source.graph)
    if symbol is None or is_gpu(maker.target) or not _is_ours(source, maker.target):
        return None
    usual = {name: source.range_of(name).nearest(USUAL) for name in source.symbols}
    found = _grouped(maker, symbol, {**usual, symbol: 1})
    if found is None or not is_each_alike(source, {**usual, symbol: IMAGES}):
        return None
    return found


def _is_ours(source: External, target: Target) -> bool:
    """Whether the schedule is one of ours: one that a user wrote may be for batches."""
    composite = match_of(source).composite
    return composite.kernel is not None or composite.schedule_for(str(target.kind)) is None


def as_serial(func: PrimFunc) -> PrimFunc:
    """A scheduled PrimFunc for one core."""

    def change(loop: Stmt) -> Stmt:
        return with_body(loop, loop.body, kind=SERIAL) if int(loop.kind) == PARALLEL else loop

    return map_loops(func, change)


def _counted(graph: OpGraph) -> str | None:
    """The symbol that is the first extent of whatever it is an extent of, of all results too."""
    values = [*graph.inputs, *graph.outputs]
    first = graph.outputs[0].shape[:1]
    if not first or not isinstance(first[0], Symbol) or not first[0].name.isidentifier():
        return None
    symbol = first[0].name

    def is_counted(value: Value) -> bool:
        return bool(value.shape) and str(value.shape[0]) == symbol

    inner = {word for v in values for extent in v.shape[is_counted(v) :] for word in _words(extent)}
    return symbol if symbol not in inner and all(map(is_counted, graph.outputs)) else None


def _words(extent: object) -> list[str]:
    text = str(extent) if isinstance(extent, Symbol) else ""
    return "".join(c if c.isalnum() or c == "_" else " " for c in text).split()


def _weights(source: External, symbol: str) -> int:
    """Bytes that are the same for all images."""
    packed = {place: p.value for place, p in packed_params(source).items()}
    values = [packed.get(place, value) for place, value in enumerate(source.graph.inputs)]
    return sum(_bytes(v) for v in values if not v.shape or str(v.shape[0]) != symbol)


def _grouped(maker: Maker, symbol: str, one: dict[str, int]) -> Grouped | None:
    """The groups by what one image takes and leaves idle, and what reading the weights does."""
    cpu, weights = machine(maker.target), _weights(maker.source, symbol)
    cycles = _cycles(maker.source.at(one).graph, weights, cpu)
    if not cycles:  # what only moves
        return None
    again = weights / _bandwidth(weights, cpu) / cycles
    pays = cycles * cpu.cores >= LEAST_OF_A_CORE and again <= FAR
    tasks = _tasks_of(maker, one) if pays else []
    most = maker.source.range_of(symbol).most
    if not tasks or (len(one) > 1 and again > NEAR):
        return None
    if cycles >= LEAST_CYCLES and _are_even(tasks, cpu):
        sizes: tuple[int, ...] = LARGE_GROUPS if again > NEAR else (1, cpu.cores)
        sizes = sizes[:1] if len(one) > 1 else sizes
        known = (n for n in dict.fromkeys(sizes) if n == 1 or not most or n <= most)
        return Grouped(symbol, tuple(map(Group, known)))
    if len(one) > 1 or again > NEAR:
        return None
    if cpu.cores == 1:
        return Grouped(symbol, (Group(1),))
    round_ = cpu.cores if any(tasks) else 1
    enough = max(2, round_, math.ceil(LEAST_AT_ONCE / cycles))
    return Grouped(symbol, (Group(1), Group(1, round_)), enough)


def _tasks_of(maker: Maker, one: dict[str, int]) -> list[int]:
    """Tasks of each region for one image; 0 of what one core does. None where there is no such
    kernel.
    """
    try:
        return [_tasks(stmt) for stmt in _outermost(maker.alone(one).func)]
    except SymbolicError:
        return []


def _are_even(tasks: list[int], cpu: Machine) -> bool:
    """Whether all regions of an image keep all cores busy."""
    return cpu.cores == 1 or all(n > 0 and cpu.is_even(n) for n in tasks)


def _cycles(graph: OpGraph, weights: int, cpu: Machine) -> float:
    """What the ops of an image take at least, by what they compute and what they read and write
    beside the weights.
    """
    costs = [cost_of(call) for call in graph.ops]
    vectors = 2 * cpu.lanes("float32") * cpu.multiply_adds * cpu.cores
    moved = sum(_bytes(value) for value in (*graph.inputs, *graph.outputs)) - weights
    return max(sum(c[1] for c in costs if c) / vectors, moved / cpu.shared_bandwidth)


def _bytes(value: Value) -> int:
    return math.prod(value.shape) * item_bytes(value.dtype)


def _bandwidth(held: int, cpu: Machine) -> float:
    """Bytes a cycle to all cores, of so many that were read for the image before."""
    if held <= cpu.l2_bytes // 2:
        return cpu.l2_bandwidth * cpu.cores
    return cpu.l3_bandwidth * cpu.cores if held <= cpu.l3_bytes // 2 else cpu.shared_bandwidth


def _outermost(func: PrimFunc) -> Iterator[Stmt]:
    """The loops of a function that are in no other one."""
    body = func.body.block.body
    yield from body.seq if type(body).__name__ == "SeqStmt" else [body]


def _tasks(stmt: Stmt) -> int:
    """Tasks of a parallel loop; 0 of any other statement."""
    is_parallel = type(stmt).__name__ == "For" and int(stmt.kind) == PARALLEL
    return int(stmt.extent) if is_parallel and isinstance(stmt.extent, tir.IntImm) else 0
