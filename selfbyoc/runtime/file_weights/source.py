"""Weights and stubs as C, which the system's compiler links into a library; C++ takes it too."""

from __future__ import annotations

import hashlib
import math
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..note import for_assembler
from .abi import Abi
from .at_the_end import aligned
from .halves import WIDEN, as_halves
from .packing_code import Made, packing_code, scratch_of
from .table import ALIGNED, GIVEN, Table, Weight, up

_SOURCE = """#include <stdint.h>
#include <string.h>

#ifdef __x86_64__ /* gigabytes are no obstacle between code and its data */
#define FLAGS "al"
#else
#define FLAGS "a"
#endif
__asm__(".section .lrodata.selfbyoc,\\"" FLAGS "\\"\\n"
        ".balign {aligned}\\n.globl selfbyoc_weights\\n"
        ".hidden selfbyoc_weights\\nselfbyoc_weights:\\n{held}\\n.previous\\n"
        ".section .lbss.selfbyoc,\\"w" FLAGS "\\",%nobits\\n"
        ".balign {aligned}\\n.globl selfbyoc_made\\n"
        ".hidden selfbyoc_made\\nselfbyoc_made:\\n.zero {size}\\n.previous\\n");

#ifdef __cplusplus
extern "C" {{
#endif
extern const unsigned char selfbyoc_weights[] __attribute__((visibility("hidden")));
extern unsigned char selfbyoc_made[] __attribute__((visibility("hidden")));
{widen}
typedef struct {{ /* DLPack's DLTensor */
  const void* data;
  int32_t device[2], ndim;
  uint8_t code, bits;
  uint16_t lanes;
  const int64_t *shape, *strides;
  uint64_t offset;
}} Tensor;

static const int64_t extents[] = {{{extents}}};
static Tensor weights[] = {{
{weights}
}};

{abi}
{making}
{stubs}
#ifdef __cplusplus
}}
#endif
"""


_IN_MEMORY = "selfbyoc_made + {}u"


@dataclass(frozen=True)
class _Piece:
    """Bytes in the file of one weight, and those in memory, where it is made when the file is
    loaded: of so many `halves`, elements of float16, or of another weight.
    """

    data: bytes | memoryview
    memory: int = 0
    halves: int = 0


@dataclass(frozen=True)
class Source:
    """A source file, and the bytes that are to be put where `mark` is once it is linked; no mark:
    they are in there.
    """

    path: str
    mark: bytes
    pieces: tuple[bytes | memoryview, ...]


def write(
    folder: Path, table: Table, abi: Abi, in_halves: bool, made: Sequence[Made], marks: bool
) -> Source:
    """The source.

    in_halves   floats that float16 can say are that in the file, and are widened when it is loaded
    made        what is packed then
    marks       whether to leave a mark for the weights (`at_the_end.py`)
    """
    is_made = {each.weight for each in made}
    pieces = [
        _Piece(b"", w.values.nbytes) if n in is_made else _piece(w, in_halves)
        for n, w in enumerate(table.weights)
    ]
    *places, _ = _places(len(piece.data) for piece in pieces)
    *starts, end = _places(piece.memory for piece in pieces)
    data = tuple(piece.data for piece in pieces)
    mark, held = _mark(data) if marks else (b"", _included(folder, data))
    scratch = scratch_of(made, end)
    weights = [*table.weights, *scratch.tensors]
    where = [*_where(pieces, places, starts), *map(_IN_MEMORY.format, scratch.places)]
    names = {
        "aligned": ALIGNED,
        "held": held,
        "size": max(scratch.end, ALIGNED),  # what is nothing in the file sets apart what follows
        "widen": _widening(pieces, places, starts) if any(p.halves for p in pieces) else "",
        "extents": ", ".join(map(str, _extents(weights))) or "0",
        "weights": ",\n".join(_tensors(weights, where)),
        "abi": abi.declared,
        "making": packing_code(made, table, scratch, abi) if made else "",
        "stubs": "\n".join(_stubs(table, abi)),
    }
    path = folder / "selfbyoc_weights.c"
    path.write_text(_SOURCE.format(**names), encoding="utf-8")
    return Source(str(path), mark, data)


def _piece(weight: Weight, in_halves: bool) -> _Piece:
    values = np.ascontiguousarray(weight.values)
    halves = as_halves(values) if in_halves else None
    if halves is None:
        return _Piece(values.data.cast("B") if values.ndim else values.tobytes())
    return _Piece(halves.tobytes(), values.nbytes, halves.size)


def _places(sizes: Iterable[int]) -> list[int]:
    """Where each begins that follows the other, aligned, and where they end."""
    return np.cumsum([0, *map(up, sizes)]).tolist()


def _mark(data: Sequence[bytes | memoryview]) -> tuple[bytes, str]:
    """A mark, and how the assembler has it. Libraries of other weights have other marks, and so
    other identities (a linker's build ID).
    """
    sums = [(len(piece), zlib.crc32(piece)) for piece in data]
    text = hashlib.sha256(repr(sums).encode()).hexdigest()
    return text.encode(), f'.ascii \\"{text}\\"'


def _included(folder: Path, data: Sequence[bytes | memoryview]) -> str:
    """A file of all, as the assembler has it."""
    path = folder / "selfbyoc_weights.bin"
    with path.open("wb") as file:
        file.writelines(aligned(data))
    return f'.incbin \\"{for_assembler(path)}\\"'


def _where(pieces: Sequence[_Piece], places: Sequence[int], starts: Sequence[int]) -> Iterator[str]:
    """Where each is when the file is loaded."""
    for piece, place, start in zip(pieces, places, starts, strict=True):
        yield _IN_MEMORY.format(start) if piece.memory else f"selfbyoc_weights + {place}u"


def _widening(pieces: Sequence[_Piece], places: Sequence[int], starts: Sequence[int]) -> str:
    rows = (
        f"{{{place}u, {start}u, {piece.halves}u}}"
        for piece, place, start in zip(pieces, places, starts, strict=True)
        if piece.halves
    )
    return WIDEN.format(pieces=", ".join(rows))


def _extents(weights: Sequence[Weight]) -> Iterator[int]:
    """Shape and strides of each."""
    for weight in weights:
        yield from weight.shape
        yield from (math.prod(weight.shape[axis + 1 :]) for axis in range(len(weight.shape)))


def _tensors(weights: Sequence[Weight], where: Sequence[str]) -> Iterator[str]:
    at = 0
    for weight, data in zip(weights, where, strict=True):
        rank = len(weight.shape)
        shape, strides = f"extents + {at}", f"extents + {at + rank}"
        code, bits, lanes = weight.dtype
        yield f"  {{{data}, {{1, 0}}, {rank}, {code}, {bits}, {lanes}, {shape}, {strides}, 0}}"
        at += 2 * rank


def _stubs(table: Table, abi: Abi) -> Iterator[str]:
    for stub in table.stubs.values():
        given = iter(range(len(stub.arguments)))
        values, types = [], []
        for argument in stub.arguments:
            n = next(given) if argument == GIVEN else argument
            values.append((abi.given if argument == GIVEN else abi.weight).format(n=n))
            types.append(abi.given_type.format(n=n) if argument == GIVEN else "7")
        yield abi.stub.format(
            stub=stub.name, kernel=stub.kernel, given=", ".join(values), types=", ".join(types),
            count=len(values),
        )  # fmt: skip
