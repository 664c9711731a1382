"""How a CPU sums the products of words, of levels exactly: by which of LLVM's features, and at what
price.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..tvm import GENERATION
from ..tvm.own_ops import BFLOATS, BYTES, BYTES_OF_7, DOTS, PAIRS, SIGNED_BYTES
from ..tvm.types import Attrs, Target
from .features import features_of


@dataclass(frozen=True)
class Product:
    """A sum and a vector of products of a kind. What no instruction multiplies is written out in
    shifts and products of int32; its feature is empty.
    """

    kind: str
    feature: str = ""
    time: int = 4  # of a vector of words, beside a multiply-add of bytes or floats
    apart: bool = True  # the sum is an instruction of its own, its operand in one more register
    held: int = 0  # registers for what is neither a sum nor a word: a constant, halves of words


# Of each kind the widest first. LLVM makes one instruction, vpdpwssd, of vpmaddwd and vpaddd where
# there is VNNI. SMLAL starts half as often as SDOT, and a word of two levels takes two.
_KNOWN = (
    Product(BYTES, "avx512vnni", 1, apart=False),
    Product(BYTES, "avxvnni", 1, apart=False),
    Product(BYTES, "i8mm", 1, apart=False),
    Product(SIGNED_BYTES, "dotprod", 1, apart=False),
    Product(BYTES_OF_7, "avx512vnni", 1, apart=False),
    Product(BYTES_OF_7, "avxvnni", 1, apart=False),
    Product(BYTES_OF_7, "i8mm", 1, apart=False),
    Product(BYTES_OF_7, "avx512bw", 3, held=1),
    Product(BYTES_OF_7, "avx2", 3, held=1),
    Product(BYTES_OF_7, "ssse3", 3, held=1),
    Product(PAIRS, "avx512vnni", 1, apart=False),
    Product(PAIRS, "avxvnni", 1, apart=False),
    Product(PAIRS, "avx512bw", 2),
    Product(PAIRS, "avx2", 2),
    Product(PAIRS, "sse2", 2),
    Product(PAIRS, "neon", 4, apart=False, held=4),
    Product(BFLOATS, "avx512bf16", 1, apart=False),
    Product(BFLOATS, "bf16", 1, apart=False),
)
# Whose vectors of every length need another feature, too.
_ANY_LENGTH = {"avx512vl", "avx512bw"}
_WITH = {"avx512vnni": _ANY_LENGTH, "avx512bf16": _ANY_LENGTH}


def products(target: Target | Attrs) -> tuple[Product, ...]:
    """Of each kind that a target has instructions for."""
    return tuple(_found(target))


def _found(target: Target | Attrs) -> Iterator[Product]:
    features = features_of(target)
    able = {name for name in features if _WITH.get(name, set()) <= features}
    # 0.17's LLVM 10 has no type for it, and its TVM no model of it (docs/makers/tvm-notes.md).
    kinds = [kind for kind in DOTS if kind != BFLOATS or GENERATION == "relax"]
    for kind in kinds:
        yield from [made for made in _KNOWN if made.kind == kind and made.feature in able][:1]


def products_of(target: Target | Attrs, kind: str) -> str:
    """The feature by which a target sums such products; empty: it has none for it."""
    return next((made.feature for made in products(target) if made.kind == kind), "")
