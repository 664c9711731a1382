"""A library's data in half the bytes, where weights have no pages of their own (Relay's virtual
machine): what TVM reads when it loads a file, with each tensor of float32 that float16 can say as
float16. Code in the file widens it while the system loads the file, into the place where TVM looks.
"""

from __future__ import annotations

import ctypes
import math
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import TargetError
from ..tvm.export import pack_imports
from ..tvm.types import Module
from .file_weights.halves import FEWEST, WIDENED, as_halves
from .note import for_assembler

# A tensor as TVM writes it, on both generations: a magic number, a reserved one, the device, the
# number of axes, the dtype; then the extents, the number of bytes, and these.
_MAGIC = struct.pack("<Q", 0xDD5E40F096B4A13F)
_HEADER = struct.Struct("<QQiiiBBH")
_FLOAT = 2  # DLPack's code

_SOURCE = """#include <stdint.h>
#include <string.h>

__asm__(".section .rodata\\n.balign 8\\n.globl selfbyoc_pieces\\n.hidden selfbyoc_pieces\\n"
        "selfbyoc_pieces:\\n.incbin \\"%(file)s\\"\\n.previous\\n");

#ifdef __cplusplus
extern "C" {
#endif
extern const unsigned char selfbyoc_pieces[] __attribute__((visibility("hidden")));
/* Where TVM looks: the number of bytes, and these. Written by a name of this file's own: of the
   other one another library may be found first. */
__attribute__((visibility("hidden"), aligned(64))) unsigned char selfbyoc_image[%(size)d];
extern unsigned char %(symbol)s[%(size)d]
    __attribute__((visibility("default"), alias("selfbyoc_image")));
#ifdef __cplusplus
}
#endif

/* The pieces: elements of float16, 0 for bytes as they are; and bytes in the file. */
static const uint64_t pieces[][2] = {%(pieces)s};

%(widened)s
__attribute__((constructor)) static void selfbyoc_widen(void) {
  const unsigned char* from = selfbyoc_pieces;
  unsigned char* to = selfbyoc_image;
  for (unsigned n = 0; n < sizeof(pieces) / sizeof(pieces[0]); ++n) {
    uint64_t elements = pieces[n][0], bytes = pieces[n][1];
    if (elements == 0) memcpy(to, from, bytes);
    for (uint64_t i = 0; i < elements; ++i) {
      uint16_t half;
      memcpy(&half, from + 2 * i, 2);
      float wide = widened(half);
      memcpy(to + 4 * i, &wide, 4);
    }
    from += bytes;
    to += elements ? 4 * elements : bytes;
  }
}
"""


@dataclass(frozen=True)
class Piece:
    """Bytes of the file; of so many elements of float16, or 0: as they are."""

    data: bytes
    elements: int = 0


def packed(module: Module, is_system_lib: bool, prefix: str, folder: str) -> str:
    """What `export_library` asks for as `fpack_imports`: a source with the module's data."""
    if not sys.platform.startswith("linux"):
        raise TargetError(f'weights="float16": expected Linux, found {sys.platform}')
    symbol, image = _image(module, prefix, Path(folder))
    pieces = list(split(image))
    data = Path(folder, "selfbyoc_pieces.bin")
    with data.open("wb") as file:
        file.writelines(piece.data for piece in pieces)
    path = Path(folder, "selfbyoc_weights.c")
    listed = ", ".join(f"{{{p.elements}u, {len(p.data)}u}}" for p in pieces)
    names = {
        "file": for_assembler(data), "symbol": symbol, "size": len(image), "pieces": listed,
        "widened": WIDENED,
    }  # fmt: skip
    path.write_text(_SOURCE % names, encoding="utf-8")
    return str(path)


def _image(module: Module, prefix: str, folder: Path) -> tuple[str, bytes]:
    """The symbol under which TVM reads a module's data, and the data: a number of bytes, these."""
    symbol, path = pack_imports(module, prefix, folder)
    library = ctypes.CDLL(str(path))
    (count,) = struct.unpack("<Q", (ctypes.c_char * 8).in_dll(library, symbol).raw)
    return symbol, (ctypes.c_char * (8 + count)).in_dll(library, symbol).raw


def split(image: bytes) -> Iterator[Piece]:
    """The pieces of an image, in order."""
    done = 0
    for start, count in _tensors(image):
        half = as_halves(np.frombuffer(image, "<f4", count, start))
        if half is not None:
            if start > done:
                yield Piece(image[done:start])
            yield Piece(half.tobytes(), count)
            done = start + 4 * count
    if done < len(image):
        yield Piece(image[done:])


def _tensors(image: bytes) -> Iterator[tuple[int, int]]:
    """Where the elements of each large tensor of float32 begin, and how many they are."""
    at = image.find(_MAGIC)
    while at >= 0:
        start, count = _elements(image, at)
        if count >= FEWEST:
            yield start, count
        at = image.find(_MAGIC, start + 4 * count)


def _elements(image: bytes, at: int) -> tuple[int, int]:
    """Of what may be a tensor: the same; no elements where it is none of float32."""
    shape = at + _HEADER.size
    if shape > len(image):
        return at + len(_MAGIC), 0
    _, _, _, _, ndim, *dtype = _HEADER.unpack_from(image, at)
    start = shape + 8 * ndim + 8
    if dtype != [_FLOAT, 32, 1] or not 0 <= ndim <= 64 or start > len(image):
        return at + len(_MAGIC), 0
    *extents, size = struct.unpack_from(f"<{ndim + 1}q", image, shape)
    count = math.prod(extents)
    fits = min(extents, default=0) >= 0 and size == 4 * count and start + size <= len(image)
    return (start, count) if fits else (at + len(_MAGIC), 0)
