"""Words of two bfloat16: made of floats, and multiplied, in sums of float32.

LLVM's vdpbf16ps and bfdot take vectors of bfloat16, which TVM makes vectors of floats before they
get there (0.27), so the call is text of ours that is linked in.

A vector of words is made of floats two apart: the row is loaded whole, and shuffled, where LLVM
would load each by itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping

from ..tvm import Analyzer, StringImm, dtype_of, region_buffer, structural_equal, tir
from ..tvm.own_ops import BFLOATS, DOTS, WORD_OF_BFLOATS, called, has_own, is_own, lanes_of
from ..tvm.rewrite import map_calls, map_loads_and_calls
from ..tvm.types import PrimExpr, PrimFunc
from .lanes import found_in
from .rows_of_bytes import part_of_row

# By LLVM's name of the feature and the lanes of the sums.
INSTRUCTIONS = {
    "avx512bf16": {lanes: f"llvm.x86.avx512bf16.dpbf16ps.{32 * lanes}" for lanes in (16, 8, 4)},
    "bf16": {4: "llvm.aarch64.neon.bfdot.v4f32.v8bf16"},
}
_FUNCTION = "selfbyoc_dot2_bfloat16"
LEAST = 4  # lanes of a vector that is looked at


def _text(name: str, lanes: int) -> str:
    sums, words, halves = f"<{lanes} x float>", f"<{lanes} x i32>", f"<{2 * lanes} x bfloat>"
    return f"""
declare {sums} @{name}({sums}, {halves}, {halves})
define {sums} @{_FUNCTION}_{lanes}({sums} %sums, {words} %a, {words} %w) {{
  %left = bitcast {words} %a to {halves}
  %right = bitcast {words} %w to {halves}
  %made = call {sums} @{name}({sums} %sums, {halves} %left, {halves} %right)
  ret {sums} %made
}}
"""


def by_instruction(feature: str, sums: PrimExpr, a: PrimExpr, w: PrimExpr) -> PrimExpr:
    """vdpbf16ps, or bfdot; what is denormal counts as zero."""
    lanes = lanes_of(a)
    if lanes not in INSTRUCTIONS[feature]:
        return as_floats(sums, a, w)
    return tir.call_pure_extern(f"float32x{lanes}", f"{_FUNCTION}_{lanes}", sums, a, w)


def as_floats(sums: PrimExpr, a: PrimExpr, w: PrimExpr) -> PrimExpr:
    """Two multiply-adds: the bits of a bfloat16 are the upper half of a float's."""
    lanes = lanes_of(a)

    def number(value: int) -> PrimExpr:
        constant = tir.const(value, "int32")
        return tir.Broadcast(constant, lanes) if lanes > 1 else constant

    def product(half: Callable[[PrimExpr], PrimExpr]) -> PrimExpr:
        dtype = f"float32x{lanes}" if lanes > 1 else "float32"
        left, right = (tir.reinterpret(dtype, half(value)) for value in (a, w))
        return left * right

    sums = sums + product(lambda value: value << number(16))
    return sums + product(lambda value: value & number(-(1 << 16)))


def with_text(func: PrimFunc) -> PrimFunc:
    """A lowered PrimFunc with the functions that its products will be."""
    has = called(func)
    for feature, names in INSTRUCTIONS.items():
        if f"{DOTS[BFLOATS]}.{feature}" in has:
            text = StringImm("".join(_text(name, lanes) for lanes, name in names.items()))
            body = tir.AttrStmt(tir.const(0, "int32"), "pragma_import_llvm", text, func.body)
            return func.with_body(body)
    return func


def with_whole_rows(func: PrimFunc) -> PrimFunc:
    """A lowered PrimFunc whose vectors of words are made of rows that are loaded whole."""
    return map_calls(func, _of_rows) if has_own(func, WORD_OF_BFLOATS) else func


def _of_rows(call: PrimExpr) -> PrimExpr:
    """The first of two elements is read at even places of rows that begin with it, the second at
    odd ones of the same rows.
    """
    if not is_own(call, WORD_OF_BFLOATS) or lanes_of(call) < LEAST:
        return call
    ana = Analyzer()
    first, second = (_two_apart(side) for side in call.args)
    pairs = [
        (one, other) for one, other in itertools.product(first, second)
        if region_buffer(one).same_as(region_buffer(other))
        and ana.can_prove_equal(_start(one) + 1, _start(other))
    ]  # fmt: skip
    evens = {one: part_of_row(one, 0, 2) for one, _ in pairs}
    odds = {other: part_of_row(one, 1, 2) for one, other in pairs}
    args = [_replaced(side, new) for side, new in zip(call.args, (evens, odds), strict=True)]
    return tir.call_intrin(dtype_of(call), call.op, *args)


def _two_apart(expr: PrimExpr) -> list[PrimExpr]:
    """The loads of vectors whose elements lie two apart."""
    return found_in(expr, lambda node: _is_load(node) and _is_two_apart(node.indices[-1]))


def _is_load(node: PrimExpr) -> bool:
    return type(node).__name__ in ("BufferLoad", "TensorLoad") and len(node.indices) == 1


def _is_two_apart(index: PrimExpr) -> bool:
    return isinstance(index, tir.Ramp) and getattr(index.stride, "value", index.stride) == 2


def _start(load: PrimExpr) -> PrimExpr:
    return load.indices[0].base


def _replaced(expr: PrimExpr, new: Mapping[PrimExpr, PrimExpr]) -> PrimExpr:
    """An expression with other expressions for some of its loads."""

    def change(node: PrimExpr) -> PrimExpr:
        return next((made for load, made in new.items() if structural_equal(load, node)), node)

    return map_loads_and_calls(expr, change) if new else expr
