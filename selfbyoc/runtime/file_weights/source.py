"""Weights and stubs as C, which the system's compiler links into a library; C++ takes it too."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..note import for_assembler
from .halves import WIDEN, as_halves
from .table import GIVEN, Table, Weight

ALIGNED = 64  # bytes: what TVM's kernels take for granted

_SOURCE = """#include <stdint.h>
#include <string.h>

#ifdef __x86_64__ /* gigabytes are no obstacle between code and its data */
#define FLAGS "al"
#else
#define FLAGS "a"
#endif
__asm__(".section .lrodata.selfbyoc,\\"" FLAGS "\\"\\n"
        ".balign {aligned}\\n.globl selfbyoc_weights\\n"
        ".hidden selfbyoc_weights\\nselfbyoc_weights:\\n.incbin \\"{file}\\"\\n.previous\\n");

#ifdef __cplusplus
extern "C" {{
#endif
extern const unsigned char selfbyoc_weights[] __attribute__((visibility("hidden")));
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
{stubs}
#ifdef __cplusplus
}}
#endif
"""


@dataclass(frozen=True)
class Abi:
    """How an executor calls a kernel: what it needs declared, and a stub with the names `{stub}`,
    `{kernel}`, `{given}` (arguments), `{types}` (of each, where they are apart) and `{count}`.
    """

    declared: str
    stub: str
    weight: str  # an argument that is weight {n}
    given: str  # one that is given, number {n}
    given_type: str = ""  # its type, where types are apart


@dataclass(frozen=True)
class _Piece:
    """Bytes in the file of one weight; `halves`: so many elements of float16, to be widened."""

    data: bytes | memoryview
    halves: int = 0


def write(folder: Path, table: Table, abi: Abi, in_halves: bool) -> str:
    """The source; -> its path. `in_halves`: floats that float16 can say are that in the file, and
    are widened when it is loaded.
    """
    pieces = [_piece(weight, in_halves) for weight in table.weights]
    data = folder / "selfbyoc_weights.bin"
    places = _written(data, pieces)
    wide = [p.halves * 4 for p in pieces]
    starts = np.concatenate([[0], np.cumsum([_up(n) for n in wide])]).tolist()
    names = {
        "aligned": ALIGNED,
        "file": for_assembler(data),
        "widen": _widening(pieces, places, starts) if any(wide) else "",
        "extents": ", ".join(map(str, _extents(table.weights))) or "0",
        "weights": ",\n".join(_tensors(table.weights, pieces, places, starts)),
        "abi": abi.declared,
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
    return _Piece(halves.tobytes(), halves.size)


def _written(path: Path, pieces: Sequence[_Piece]) -> list[int]:
    """Write them one after the other, aligned; -> where each begins."""
    places, at = [], 0
    with path.open("wb") as file:
        for piece in pieces:
            places.append(at)
            file.write(piece.data)
            size = len(piece.data)
            file.write(bytes(_up(size) - size))
            at += _up(size)
    return places


def _up(size: int) -> int:
    return -(-size // ALIGNED) * ALIGNED


def _widening(pieces: Sequence[_Piece], places: Sequence[int], starts: Sequence[int]) -> str:
    rows = (
        f"{{{place}u, {start}u, {piece.halves}u}}"
        for piece, place, start in zip(pieces, places, starts, strict=False)
        if piece.halves
    )
    return WIDEN.format(size=starts[-1], aligned=ALIGNED, pieces=", ".join(rows))


def _extents(weights: Sequence[Weight]) -> Iterator[int]:
    """Shape and strides of each."""
    for weight in weights:
        yield from weight.shape
        yield from (math.prod(weight.shape[axis + 1 :]) for axis in range(len(weight.shape)))


def _tensors(
    weights: Sequence[Weight], pieces: Sequence[_Piece], places: Sequence[int],
    starts: Sequence[int],
) -> Iterator[str]:  # fmt: skip
    at = 0
    for weight, piece, place, start in zip(weights, pieces, places, starts, strict=False):
        data = f"selfbyoc_wide + {start}u" if piece.halves else f"selfbyoc_weights + {place}u"
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
