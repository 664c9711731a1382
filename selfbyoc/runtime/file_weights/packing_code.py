"""C that packs weights while the system loads a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .abi import Abi
from .table import Table, Weight, up

# Pages of memory take longer than packing, and least where they are asked for together: of 97 MB
# 0.05 s, 0.07 one by one. Large pages (MADV_HUGEPAGE) take 0.02, or 0.4 where memory is in pieces.
_SOURCE = """#include <sys/mman.h>
#include <unistd.h>

/* The whole pages in some memory. */
static void advise(const void* data, uint64_t size, int advice) {{
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  uintptr_t begin = ((uintptr_t)data + page - 1) / page * page;
  uintptr_t end = ((uintptr_t)data + size) / page * page;
  if (begin < end) (void)madvise((void*)begin, end - begin, advice);
}}

__attribute__((constructor)) static void selfbyoc_pack(void) {{
#ifdef MADV_POPULATE_WRITE
  advise(selfbyoc_made, {size}u, MADV_POPULATE_WRITE);
#endif
{calls}
  advise(selfbyoc_made + {kept}u, {scratch}u, MADV_DONTNEED);
}}
"""


@dataclass(frozen=True)
class Made:
    """Weight number `weight` of a table, which `function` makes of number `original`, with memory
    for the tensors `between`.
    """

    weight: int
    original: int
    function: str
    between: tuple[Weight, ...]


@dataclass(frozen=True)
class Scratch:
    """The tensors between, which share memory from `start` to `end`: their numbers after a table's,
    and where each is.
    """

    tensors: tuple[Weight, ...]
    places: tuple[int, ...]
    start: int
    end: int


def scratch_of(made: Sequence[Made], start: int) -> Scratch:
    """Of one weight after the other."""
    places, end = [], start
    for each in made:
        at = start
        for tensor in each.between:
            places.append(at)
            at += up(tensor.values.nbytes)
        end = max(end, at)
    return Scratch(tuple(t for each in made for t in each.between), tuple(places), start, end)


def packing_code(made: Sequence[Made], table: Table, scratch: Scratch, abi: Abi) -> str:
    """What makes the weights, and gives back the pages of originals that no kernel reads."""
    read = {number for stub in table.stubs.values() for number in stub.arguments}
    lines, first = [], len(table.weights)
    for each in made:
        between = range(first, first + len(each.between))
        numbers, first = (each.original, *between, each.weight), between.stop
        given = ", ".join(abi.weight.format(n=n) for n in numbers)
        types = ", ".join("7" for _ in numbers)
        lines.append(
            abi.pack.format(function=each.function, given=given, types=types, count=len(numbers))
        )
    for number in sorted({each.original for each in made} - read):
        size = table.weights[number].values.nbytes
        lines.append(f"advise(weights[{number}].data, {size}u, MADV_DONTNEED);")
    names = {"size": scratch.end, "kept": scratch.start, "scratch": scratch.end - scratch.start}
    return _SOURCE.format(calls="\n".join(f"  {line}" for line in lines), **names)
