"""Products of bytes as the CPU has them: exact sums in int32, whatever the operands.

A function says by an attribute which instructions its target has (`for_target`); when its loops are
vectors, each `C + dot4(a, w)` becomes one of them (`with_dot_products`). `vpmaddubsw`, which
saturates, is none of these. What has no instruction is written out in shifts and products.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._tvm import dtype_of, tir, walk
from .._tvm_dot import as_bits, bytes_of, intrinsic, is_dot4
from .._tvm_rewrite import map_calls, map_sums
from ..cpu_features import architecture, features_of

SET = "tefuse.dot4"  # which instructions
VNNI, AVX_VNNI, WORDS_512, WORDS_256, WORDS_128, NEON = (
    "avx512vnni", "avxvnni", "avx512bw", "avx2", "sse2", "dotprod"
)  # fmt: skip
_WORDS = {
    16: "llvm.x86.avx512.pmaddw.d.512", 8: "llvm.x86.avx2.pmadd.wd", 4: "llvm.x86.sse2.pmadd.wd",
}  # fmt: skip
_WIDEST = {WORDS_512: 16, WORDS_256: 8, WORDS_128: 4}


def set_of(target: Any) -> str:
    """The instructions for products of bytes that a target has; empty: none."""
    features = features_of(target)
    if architecture(target) == "aarch64":
        return NEON if NEON in features else ""
    if VNNI in features and "avx512vl" in features:
        return VNNI
    return next((s for s in (AVX_VNNI, WORDS_512, WORDS_256, WORDS_128) if s in features), "")


def for_target(func: Any, target: Any) -> Any:
    """A scheduled function that says how its products of bytes are computed, if it has any; for
    another target than LLVM they are written out.
    """
    if not has_any(func):
        return func
    if str(target.kind) != "llvm":
        return map_calls(func, lambda call: _written_out(call) if is_dot4(call) else call)
    return func.with_attr(SET, set_of(target))


def has_any(func: Any) -> bool:
    """Whether a function multiplies bytes."""
    found: list[Any] = []
    walk(func.body, lambda node: found.append(node) if is_dot4(node) else None, "Call")
    return bool(found)


def with_dot_products(func: Any) -> Any:
    """A lowered function of vectors with instructions for its products of bytes."""
    if func.attrs is None or SET not in func.attrs:
        return func
    name = str(func.attrs[SET])

    def added(node: Any) -> Any:
        for product, sums in ((node.b, node.a), (node.a, node.b)):
            if is_dot4(product) and (made := _accumulated(name, product, sums)) is not None:
                return made
        return node

    def alone(call: Any) -> Any:
        if not is_dot4(call):
            return call
        zero = tir.const(0, "int32")
        lanes = _lanes(call)
        zero = tir.Broadcast(zero, lanes) if lanes > 1 else zero
        made = _accumulated(name, call, zero)
        return _written_out(call) if made is None else made

    return map_calls(map_sums(func, added), alone)


def _lanes(expr: Any) -> int:
    return int(str(dtype_of(expr)).partition("x")[2] or 1)


def _accumulated(name: str, product: Any, sums: Any) -> Any | None:
    """Sums and a product by one instruction or a few; None where there are none of so many lanes."""
    (a, w), lanes = product.args, _lanes(product)
    if name == VNNI and lanes in (4, 8, 16):
        return _dot(f"llvm.x86.avx512.vpdpbusd.{32 * lanes}", lanes, sums, a, w)
    if name == AVX_VNNI and lanes in (4, 8):
        return _dot(f"llvm.x86.avx512.vpdpbusd.{32 * lanes}", lanes, sums, a, w)
    if name == NEON and lanes == 4:
        return _by_neon(sums, a, w)
    if lanes in _WORDS and lanes <= _WIDEST.get(name, 8):
        return _by_words(lanes, sums, a, w)
    return None


def _dot(name: str, lanes: int, sums: Any, a: Any, w: Any) -> Any:
    operands = (as_bits(bytes_of(lanes), value) for value in (a, w))
    return intrinsic(name, f"int32x{lanes}", sums, *operands)


def _by_neon(sums: Any, a: Any, w: Any) -> Any:
    """SDOT of a - 128, and 128 times the sum of w, which is an SDOT too."""
    flipped = as_bits("int8x16", a ^ _all(4, -0x7F7F7F80))
    signed, ones = as_bits("int8x16", w), tir.Broadcast(tir.const(64, "int8"), 16)
    name = "llvm.aarch64.neon.sdot.v4i32.v16i8"
    for left in (ones, ones, flipped):
        sums = intrinsic(name, "int32x4", sums, left, signed)
    return sums


def _by_words(lanes: int, sums: Any, a: Any, w: Any) -> Any:
    """vpmaddwd of the even bytes as int16, and of the odd ones: exact, where vpmaddubsw is not."""
    low, eight = _all(lanes, 0x00FF00FF), tir.Broadcast(tir.const(8, "int16"), 2 * lanes)
    words = as_bits(f"int16x{2 * lanes}", w)
    evens = a & low, (words << eight) >> eight
    odds = (a >> _all(lanes, 8)) & low, words >> eight
    for left, right in (evens, odds):
        left = as_bits(f"int16x{2 * lanes}", left)
        sums = sums + intrinsic(_WORDS[lanes], f"int32x{lanes}", left, right)
    return sums


def _written_out(call: Any) -> Any:
    """The same in shifts and products of int32."""
    (a, w), lanes = call.args, _lanes(call)
    number: Callable[[int], Any] = lambda n: _all(lanes, n)  # noqa: E731
    products = (
        ((a >> number(8 * i)) & number(255)) * ((w << number(24 - 8 * i)) >> number(24))
        for i in range(4)
    )
    first, *others = products
    for product in others:
        first = first + product
    return first


def _all(lanes: int, number: int) -> Any:
    value = tir.const(number, "int32")
    return tir.Broadcast(value, lanes) if lanes > 1 else value
