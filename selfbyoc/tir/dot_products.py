"""Products of words as the CPU has them: of bytes exact sums in int32, whatever the operands; of
bfloat16 sums in float32.

`with_dot_products` puts what the target has in the place of `C + dot(4, a, w)`; it becomes
instructions when its loops are vectors. `vpmaddubsw`, which saturates, is taken for weights of 7
bits alone. What has no instruction, such as single elements, is written out in shifts and products.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from ..machine.products import products_of
from ..tvm import tir
from ..tvm.own_ops import (
    BFLOATS,
    BYTES,
    BYTES_OF_7,
    DOTS,
    LEAST_OF,
    LEVELS_OF,
    PAIRS,
    SIGNED_BYTES,
    as_bits,
    bytes_of,
    called,
    is_own,
    lanes_of,
    llvm,
    own_op,
    sums_of,
)
from ..tvm.rewrite import map_calls, mapped
from ..tvm.types import PrimExpr, PrimFunc, Target
from .bfloat16 import INSTRUCTIONS, as_floats, by_instruction

_OF_PAIRS = {
    16: "llvm.x86.avx512.pmaddw.d.512", 8: "llvm.x86.avx2.pmadd.wd", 4: "llvm.x86.sse2.pmadd.wd",
}  # fmt: skip
_OF_BYTES = {
    16: "llvm.x86.avx512.pmaddubs.w.512", 8: "llvm.x86.avx2.pmadd.ub.sw",
    4: "llvm.x86.ssse3.pmadd.ub.sw.128",
}  # fmt: skip


def with_dot_products(func: PrimFunc, target: Target) -> PrimFunc:
    """A scheduled function with the target's instructions for its products of words."""
    has = called(func)
    for kind, name in DOTS.items():
        if name in has:
            func = _lowered(func, kind, _MADE[kind][products_of(target, kind)])
    return func


def options_for_sums(functions: Iterable[PrimFunc]) -> tuple[str, ...]:
    """LLVM's options for functions in which a product is an instruction and its sum another.

    LLVM regroups additions of integers, (sum + a) + b as sum + (a + b), for a shorter chain: of a
    register tile whose sums are chains enough it then spills half. 1024x14x14 to 256 by 1x1 on Zen
    3: 0.49 to 0.98 ms, and 0.46 to 0.55 without (two cores, Nov 2026).
    """
    has_products = any(name in has for has in map(called, functions) for name in _APART)
    return (_ONE_BY_ONE,) if has_products else ()


_ONE_BY_ONE = "-x86-machine-combiner:bool=false"


def _named(kind: str, feature: str) -> str:
    return f"{DOTS[kind]}.{feature or 'any'}"


def _lowered(func: PrimFunc, kind: str, accumulate: Callable[..., PrimExpr]) -> PrimFunc:
    name, zero = DOTS[kind], tir.const(0, sums_of(kind))

    def added(node: PrimExpr) -> PrimExpr:
        for product, sums in ((node.b, node.a), (node.a, node.b)):
            if is_own(product, name):
                return accumulate(sums, *product.args)
        return node

    def alone(call: PrimExpr) -> PrimExpr:
        return accumulate(zero, *call.args) if is_own(call, name) else call

    return map_calls(mapped(func, "Add", added), alone)


def _by_vnni(most: int, sums: PrimExpr, a: PrimExpr, w: PrimExpr) -> PrimExpr:
    lanes = lanes_of(a)
    if not is_whole(lanes, most):
        return _written_out(BYTES, sums, a, w)
    operands = (as_bits(bytes_of(lanes), value) for value in (a, w))
    return llvm(f"llvm.x86.avx512.vpdpbusd.{32 * lanes}", f"int32x{lanes}", sums, *operands)


def _by_neon(kind: str, sums: PrimExpr, a: PrimExpr, w: PrimExpr) -> PrimExpr:
    """SDOT, or USDOT of unsigned levels."""
    if lanes_of(a) != 4:
        return _written_out(kind, sums, a, w)
    name = "sdot" if LEAST_OF[kind] else "usdot"
    operands = (as_bits("int8x16", value) for value in (a, w))
    return llvm(f"llvm.aarch64.neon.{name}.v4i32.v16i8", "int32x4", sums, *operands)


def _by_halves(sums: PrimExpr, a: PrimExpr, w: PrimExpr) -> PrimExpr:
    """SMLAL of the lower levels, and of the upper ones."""
    if lanes_of(a) != 4:
        return _written_out(PAIRS, sums, a, w)
    for up in (0, 16):
        left, right = ((value >> everywhere(4, up)).astype("int16x4") for value in (a, w))
        sums = sums + llvm("llvm.aarch64.neon.smull.v4i32", "int32x4", left, right)
    return sums


def _by_pairs(most: int, sums: PrimExpr, a: PrimExpr, w: PrimExpr) -> PrimExpr:
    """vpmaddwd: exact, where vpmaddubsw is not."""
    lanes = lanes_of(a)
    if not is_whole(lanes, most):
        return _written_out(PAIRS, sums, a, w)
    left, right = (as_bits(f"int16x{2 * lanes}", value) for value in (a, w))
    return sums + llvm(_OF_PAIRS[lanes], f"int32x{lanes}", left, right)


def _by_small_bytes(most: int, sums: PrimExpr, a: PrimExpr, w: PrimExpr) -> PrimExpr:
    """vpmaddubsw, whose sums of two fit 16 bits: 2 * 255 * 64; and vpmaddwd by ones."""
    lanes = lanes_of(a)
    if not is_whole(lanes, most):
        return _written_out(BYTES_OF_7, sums, a, w)
    return sums + sum_of_twos(twos(a, w))


def is_whole(lanes: int, most: int) -> bool:
    """Whether there is an instruction for a vector of words, of which the widest has `most`."""
    return lanes in _OF_PAIRS and lanes <= most


def twos(a: PrimExpr, w: PrimExpr) -> PrimExpr:
    """vpmaddubsw of vectors of words: sums of two products, in int16."""
    lanes = lanes_of(a)
    left, right = (as_bits(f"int8x{4 * lanes}", value) for value in (a, w))
    return llvm(_OF_BYTES[lanes], f"int16x{2 * lanes}", left, right)


def sum_of_twos(pairs: PrimExpr) -> PrimExpr:
    """vpmaddwd by ones: the sum of each pair of int16."""
    lanes = lanes_of(pairs) // 2
    ones = tir.Broadcast(tir.const(1, "int16"), 2 * lanes)
    return llvm(_OF_PAIRS[lanes], f"int32x{lanes}", pairs, ones)


def _written_out(kind: str, sums: PrimExpr, a: PrimExpr, w: PrimExpr) -> PrimExpr:
    """The same in shifts and products of int32."""
    lanes, word = lanes_of(a), LEVELS_OF[kind]
    bits = 32 // word
    has_signs = kind == PAIRS or LEAST_OF[kind] < 0
    for i in range(word):
        up, down = everywhere(lanes, 32 - bits * (i + 1)), everywhere(lanes, 32 - bits)
        own = (a >> everywhere(lanes, bits * i)) & everywhere(lanes, 255)
        left = (a << up) >> down if has_signs else own
        right = (w << up) >> down
        sums = sums + left * right
    return sums


def everywhere(lanes: int, number: int) -> PrimExpr:
    """A number in each lane."""
    value = tir.const(number, "int32")
    return tir.Broadcast(value, lanes) if lanes > 1 else value


# By the kind and LLVM's name of the feature; the most lanes of a vector.
_UNSIGNED: dict[str, Callable[..., Any]] = {
    "avx512vnni": partial(_by_vnni, 16), "avxvnni": partial(_by_vnni, 8),
    "i8mm": partial(_by_neon, BYTES), "": partial(_written_out, BYTES),
}  # fmt: skip
_SUMS_APART: dict[str, dict[str, Callable[..., Any]]] = {
    BYTES_OF_7: {
        "avx512bw": partial(_by_small_bytes, 16), "avx2": partial(_by_small_bytes, 8),
        "ssse3": partial(_by_small_bytes, 4),
    },
    PAIRS: {
        "avx512vnni": partial(_by_pairs, 16), "avxvnni": partial(_by_pairs, 8),
        "avx512bw": partial(_by_pairs, 16), "avx2": partial(_by_pairs, 8),
        "sse2": partial(_by_pairs, 4),
    },
}  # fmt: skip
_LOWERED: dict[str, dict[str, Callable[..., Any]]] = {
    BYTES: _UNSIGNED,
    SIGNED_BYTES: {
        "dotprod": partial(_by_neon, SIGNED_BYTES), "": partial(_written_out, SIGNED_BYTES),
    },
    BYTES_OF_7: {**_UNSIGNED, **_SUMS_APART[BYTES_OF_7]},
    PAIRS: {**_SUMS_APART[PAIRS], "neon": _by_halves, "": partial(_written_out, PAIRS)},
    BFLOATS: {"": as_floats, **{f: partial(by_instruction, f) for f in INSTRUCTIONS}},
}  # fmt: skip
_MADE = {
    kind: {f: own_op(_named(kind, f), how, sums_of(kind)) for f, how in found.items()}
    for kind, found in _LOWERED.items()
}
_APART = [_named(kind, f) for kind, found in _SUMS_APART.items() for f in found]
