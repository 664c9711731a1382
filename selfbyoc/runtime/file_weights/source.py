"""Weights and stubs as C, which the system's compiler links into a library; C++ takes it too."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..note import for_assembler
from .abi import Abi
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
        ".hidden selfbyoc_weights\\nselfbyoc_weights:\\n.incbin \\"{file}\\"\\n.previous\\n"
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


def write(folder: Path, table: Table, abi: Abi, in_halves: bool, made: Sequence[Made] = ()) -> str:
    """The source; -> its path. `in_halves`: floats that float16 can say are that in the file, and
    are widened when it is loaded; `made`: what is packed then.
    """
    is_made = {each.weight for each in made}
    pieces = [
        _Piece(b"", w.values.nbytes) if n in is_made else _piece(w, in_halves)
        for n, w in enumerate(table.weights)
    ]
    data = folder / "selfbyoc_weights.bin"
    places = _written(data, pieces)
    starts = np.cumsum([0, *(up(piece.memory) for piece in pieces)]).tolist()
    scratch = scratch_of(made, starts.pop())
    weights = [*table.weights, *scratch.tensors]
    where = [*_where(pieces, places, starts), *map(_IN_MEMORY.format, scratch.places)]
    names = {
        "aligned": ALIGNED,
        "file": for_assembler(data),
        "size": scratch.end,
        "widen": _widening(pieces, places, starts) if any(p.halves for p in pieces) else "",
        "extents": ", ".join(map(str, _extents(weights))) or "0",
        "weights": ",\n".join(_tensors(weights, where)),
        "abi": abi.declared,
        "making": packing_code(made, table, scratch, abi) if made else "",
        "stubs": "\n".join(_stubs(table, abi)),
    }
    path = folder / "selfbyoc_weights.c"
    path.write_text(_SOURCE.format(**names), encoding="utf-8")
    return str(path)


def _piece(weight: Weight, in_halves: bool) -> _Piece:
    values = np.ascontiguousarray(weight.values)
    halves = as_halves(values) if in_halves else None
    if halves is None:
        return _Piece(values.data.cast("B") if values.ndim else values.tobytes())
    return _Piece(halves.tobytes(), values.nbytes, halves.size)


def _written(path: Path, pieces: Sequence[_Piece]) -> list[int]:
    """Write them one after the other, aligned; -> where each begins."""
    places, at = [], 0
    with path.open("wb") as file:
        for piece in pieces:
            places.append(at)
            file.write(piece.data)
            size = len(piece.data)
            file.write(bytes(up(size) - size))
            at += up(size)
    return places


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
