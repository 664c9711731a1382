"""Products of bytes as the CPU has them: exact sums in int32, whatever the operands.

`with_dot_products` puts what the target has in the place of `C + dot4(a, w)`; it becomes
instructions when its loops are vectors. `vpmaddubsw`, which saturates, is none of these. What has
no instruction, such as single elements, is written out in shifts and products.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from .._tvm import tir
from .._tvm_own_ops import DOT4, as_bits, bytes_of, has_own, is_own, lanes_of, llvm, own_op
from .._tvm_rewrite import map_calls, mapped
from ..cpu_features import architecture, features_of

_WORDS = {
    16: "llvm.x86.avx512.pmaddw.d.512", 8: "llvm.x86.avx2.pmadd.wd", 4: "llvm.x86.sse2.pmadd.wd",
}  # fmt: skip


def with_dot_products(func: Any, target: Any) -> Any:
    """A scheduled function with the target's instructions for its products of bytes."""
    if not has_own(func, DOT4):
        return func
    accumulate = _INSTRUCTIONS[_set_of(target)]

    def added(node: Any) -> Any:
        for product, sums in ((node.b, node.a), (node.a, node.b)):
            if is_own(product, DOT4):
                return accumulate(sums, *product.args)
        return node

    def alone(call: Any) -> Any:
        return accumulate(tir.const(0, "int32"), *call.args) if is_own(call, DOT4) else call

    return map_calls(mapped(func, "Add", added), alone)


def _set_of(target: Any) -> str:
    """The instructions for products of bytes that a target has."""
    features = features_of(target)
    if architecture(target) == "aarch64":
        return "dotprod" if "dotprod" in features else ""
    if "avx512vnni" in features and "avx512vl" in features:
        return "avx512vnni"
    return next((s for s in ("avxvnni", "avx512bw", "avx2", "sse2") if s in features), "")


def _by_vnni(most: int, sums: Any, a: Any, w: Any) -> Any:
    lanes = lanes_of(a)
    if lanes not in (4, 8, 16) or lanes > most:
        return _written_out(sums, a, w)
    operands = (as_bits(bytes_of(lanes), value) for value in (a, w))
    return llvm(f"llvm.x86.avx512.vpdpbusd.{32 * lanes}", f"int32x{lanes}", sums, *operands)


def _by_neon(sums: Any, a: Any, w: Any) -> Any:
    """SDOT of a - 128, and 128 times the sum of w, which is an SDOT too."""
    if lanes_of(a) != 4:
        return _written_out(sums, a, w)
    flipped = as_bits("int8x16", a ^ _all(4, -0x7F7F7F80))
    signed, half = as_bits("int8x16", w), tir.Broadcast(tir.const(64, "int8"), 16)
    for left in (half, half, flipped):
        sums = llvm("llvm.aarch64.neon.sdot.v4i32.v16i8", "int32x4", sums, left, signed)
    return sums


def _by_words(most: int, sums: Any, a: Any, w: Any) -> Any:
    """vpmaddwd of the even bytes as int16, and of the odd ones: exact, where vpmaddubsw is not."""
    lanes = lanes_of(a)
    if lanes not in _WORDS or lanes > most:
        return _written_out(sums, a, w)
    low, eight = _all(lanes, 0x00FF00FF), tir.Broadcast(tir.const(8, "int16"), 2 * lanes)
    words = as_bits(f"int16x{2 * lanes}", w)
    evens = a & low, (words << eight) >> eight
    odds = (a >> _all(lanes, 8)) & low, words >> eight
    for left, right in (evens, odds):
        left = as_bits(f"int16x{2 * lanes}", left)
        sums = sums + llvm(_WORDS[lanes], f"int32x{lanes}", left, right)
    return sums


def _written_out(sums: Any, a: Any, w: Any) -> Any:
    """The same in shifts and products of int32."""
    lanes = lanes_of(a)
    for i in range(4):
        left = (a >> _all(lanes, 8 * i)) & _all(lanes, 255)
        sums = sums + left * ((w << _all(lanes, 24 - 8 * i)) >> _all(lanes, 24))
    return sums


def _all(lanes: int, number: int) -> Any:
    value = tir.const(number, "int32")
    return tir.Broadcast(value, lanes) if lanes > 1 else value


# By LLVM's name of the feature; the most lanes of a vector.
_LOWERED: dict[str, Callable[..., Any]] = {
    "avx512vnni": partial(_by_vnni, 16), "avxvnni": partial(_by_vnni, 8),
    "avx512bw": partial(_by_words, 16), "avx2": partial(_by_words, 8),
    "sse2": partial(_by_words, 4), "dotprod": _by_neon,
}  # fmt: skip
_INSTRUCTIONS = {name: own_op(f"{DOT4}.{name}", how) for name, how in _LOWERED.items()}
_INSTRUCTIONS[""] = _written_out
