"""The instructions that multiply vectors, and how many multiply-adds each computes."""

from __future__ import annotations

import re
from dataclasses import dataclass

_VECTOR = re.compile(r"%([xyz])mm\d+|\bv\d+\.(\d+)([bhsd])\b")
_BYTES = {"x": 16, "y": 32, "z": 64}
_NAME = re.compile(r"(?:\{vex\}\s+)?(\S+)\s*(.*)")


@dataclass(frozen=True)
class Product:
    """Instructions of one kind. `in_lane`: multiply-adds of a lane of the sum; on x86-64, of 32
    bits.
    """

    name: str
    instructions: str
    in_lane: int = 1


FLOATS = Product("floats", r"vfn?m(add|sub)\d+ps|v?mulps|fml[as]|fmul")
VPDPBUSD = Product("vpdpbusd", "vpdpbusd", 4)
VPDPWSSD = Product("vpdpwssd", "vpdpwssd", 2)
PMADDWD = Product("pmaddwd", "v?pmaddwd", 2)  # its sum is an instruction of its own
SDOT = Product("sdot", "sdot", 4)
USDOT = Product("usdot", "usdot", 4)
SMLAL = Product("smlal", "[su]ml[as]l2?|[su]mull2?")
MLA = Product("mla", "ml[as]|mul")
VDPBF16PS = Product("vdpbf16ps", "vdpbf16ps", 2)
BFDOT = Product("bfdot", "bfdot", 2)
PRODUCTS = (FLOATS, VPDPBUSD, VPDPWSSD, PMADDWD, SDOT, USDOT, SMLAL, MLA, VDPBF16PS, BFDOT)


def name_of(line: str) -> str:
    """An instruction's name, without what tells the assembler how to encode it."""
    return _NAME.match(line)[1]  # type: ignore[index]


def operands_of(line: str) -> str:
    """What follows the name."""
    return _NAME.match(line)[2]  # type: ignore[index]


def product_of(line: str) -> Product | None:
    """Which kind of product of vectors an instruction is, if any."""
    name = name_of(line)
    kinds = (kind for kind in PRODUCTS if re.fullmatch(kind.instructions, name))
    return next(kinds, None) if _VECTOR.search(line) else None


def vector_bytes(line: str) -> int:
    """Of the sums that a product adds to."""
    x86, lanes, element = _sums(line)
    return _BYTES[x86] if x86 else int(lanes) * {"b": 1, "h": 2, "s": 4, "d": 8}[element]


def multiply_adds(line: str) -> int:
    """That an instruction computes."""
    product = product_of(line)
    if product is None:
        return 0
    x86, lanes, _ = _sums(line)
    return product.in_lane * (_BYTES[x86] // 4 if x86 else int(lanes))


def _sums(line: str) -> tuple[str, ...]:
    """On x86-64 a vector like the others of the line, on AArch64 the first."""
    return _VECTOR.search(line).groups()  # type: ignore[union-attr]
