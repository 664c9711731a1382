"""Ops of ours in TIR: sums of products of words, and quotients that become integers.

TVM vectorises what says that it can be, and leaves what it does not know as it is: so schedules
make vectors of them, and TVM's own LowerIntrin asks for the instructions (tir/dot_products.py,
quotients.py). One of LLVM's named at once would stay scalar: no loop of it is vectorised.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.ir import _ffi_api
from tvm.ir.op import register_op_attr

from . import GENERATION, dtype_of, tir, tvm, walk
from .rounding import nearbyint
from .types import Op, PrimExpr, PrimFunc

# Kinds of sums of products in a word of 32 bits: of two int16, of four bytes, of four of which one
# factor has 7 bits, so that two products fit 16, of four of which both have signs, and of two
# bfloat16, in float32; the numbers in a word of each, and the least level.
PAIRS, BYTES, BYTES_OF_7, SIGNED_BYTES = "pairs", "bytes", "bytes of 7 bits", "signed bytes"
BFLOATS = "pairs of bfloat16"
LEVELS_OF = {PAIRS: 2, BYTES: 4, BYTES_OF_7: 4, SIGNED_BYTES: 4, BFLOATS: 2}
LEAST_OF = {PAIRS: 0, BYTES: 0, BYTES_OF_7: 0, SIGNED_BYTES: -128}
DOTS = {
    PAIRS: "selfbyoc.dot2", BYTES: "selfbyoc.dot4", BYTES_OF_7: "selfbyoc.dot4_of_7_bits",
    SIGNED_BYTES: "selfbyoc.dot4_signed", BFLOATS: "selfbyoc.dot2_bfloat16",
}  # fmt: skip
# Sums in 16 bits, two in a word: of the bytes of two words, of two such sums, and of both halves.
HALVES, ADDED_HALVES, TOTAL_OF_HALVES = (
    "selfbyoc.dot4_in_halves", "selfbyoc.added_halves", "selfbyoc.total_of_halves"
)  # fmt: skip
QUOTIENT = "selfbyoc.quotient"
WITHIN = "selfbyoc.within"
NEAREST = "selfbyoc.nearest"
WORD_OF_BFLOATS = "selfbyoc.word_of_bfloat16"

Lowering = Callable[..., Any]  # of the arguments, vectors or not


def _registered(name: str) -> Op:
    _ffi_api.RegisterOp(name, "an op of selfbyoc's")
    register_op_attr(name, "TVectorizable", True)
    register_op_attr(name, "TCallEffectKind", 1)  # pure
    register_op_attr(name, "TScriptPrinterName", name)
    return tvm.ir.Op.get(name)


def own_op(name: str, lowering: Lowering, dtype: str = "int32") -> Callable[..., PrimExpr]:
    """An op that is lowered so, as vectors where its loops are vectorised; -> a function of its
    arguments.
    """
    op = _registered(name)
    where: Any = tir if hasattr(tir, "register_intrin_lowering") else tvm.ir  # 0.26, Relay
    where.register_intrin_lowering(
        name, target="default", f=lambda call: lowering(*call.args), level=99
    )
    return lambda *args: tir.call_intrin(dtype, op, *args)


_DOTS = {kind: _registered(name) for kind, name in DOTS.items()}
_HALVES = {name: _registered(name) for name in (HALVES, ADDED_HALVES, TOTAL_OF_HALVES)}
quotient = own_op(QUOTIENT, tir.div, "float32")
"""x / y of floats, where the quotient lies between -2**17 and 2**17, or is NaN."""
within = own_op(WITHIN, lambda x, low, high: tir.Max(low, tir.Min(high, x)), "float32")
"""x within limits, of which one is not above 0 and the other not below it."""


def nearest_written_out(over: PrimExpr, zero: PrimExpr, low: PrimExpr, high: PrimExpr) -> PrimExpr:
    """What `nearest` gives, in TIR's own ops."""
    return nearbyint(over).astype(_as("int32", over)) + zero


def _as(dtype: str, value: PrimExpr) -> str:
    """A dtype with as many lanes as a value."""
    lanes = lanes_of(value)
    return f"{dtype}x{lanes}" if lanes > 1 else dtype


nearest = own_op(NEAREST, nearest_written_out)
"""The integer nearest to a float, halves to even, plus an int32; the sum lies from `low` to `high`
by itself.
"""


def _rounded_word(low: PrimExpr, high: PrimExpr) -> PrimExpr:
    lower, upper = (_bits_of_bfloat16(value) for value in (low, high))
    word = (upper & _number(0xFFFF0000, low)) | (lower >> _number(16, low))
    return tir.reinterpret(_as("int32", low), word)


def _bits_of_bfloat16(value: PrimExpr) -> PrimExpr:
    """The bits of a float, whose upper half is the nearest bfloat16."""

    def number(bits: int) -> PrimExpr:
        return _number(bits, value)

    found = tir.reinterpret(_as("uint32", value), value)
    near = found + (((found >> number(16)) & number(1)) + number(0x7FFF))
    is_nan = (found & number(0x7FFFFFFF)) > number(0x7F800000)
    return tir.Select(is_nan, found | number(1 << 22), near)


def _number(bits: int, value: PrimExpr) -> PrimExpr:
    """Bits in each lane of a value."""
    found, lanes = tir.const(bits, "uint32"), lanes_of(value)
    return tir.Broadcast(found, lanes) if lanes > 1 else found


word_of_bfloat16 = own_op(WORD_OF_BFLOATS, _rounded_word)
"""Two floats, each rounded to bfloat16, halves to even, in an int32, the first one lower."""


def dot(kind: str, levels: PrimExpr, weights: PrimExpr) -> PrimExpr:
    """Of the four bytes of two int32, of which those of the first count from the kind's least level
    on, of the second -128 to 127, or -64 to 64; or of two int16 of each. Of two bfloat16 of each it
    is a float32.
    """
    return tir.call_intrin(sums_of(kind), _DOTS[kind], levels, weights)


def of_halves(name: str, *args: PrimExpr) -> PrimExpr:
    """An op of sums in 16 bits: HALVES (of bytes without signs, and with), ADDED_HALVES of two such
    words, TOTAL_OF_HALVES of one. Whoever asks for it knows that no sum is too large.
    """
    return tir.call_intrin("int32", _HALVES[name], *args)


def sums_of(kind: str) -> str:
    """The dtype that products of a kind are summed in."""
    return "float32" if kind == BFLOATS else "int32"


def word_of_dot(node: PrimExpr) -> int:
    """Products of a `dot`; 0 of anything else."""
    return next((LEVELS_OF[kind] for kind, name in DOTS.items() if is_own(node, name)), 0)


def is_own(node: PrimExpr, name: str) -> bool:
    """Whether an expression is a call of such an op."""
    return getattr(getattr(node, "op", None), "name", "") == name


def has_own(func: PrimFunc, name: str) -> bool:
    """Whether a function has a call of such an op."""
    return name in called(func)


def called(func: PrimFunc) -> set[str]:
    """The names of the ops that a function calls, ours and TVM's."""
    found: set[str] = set()
    walk(func.body, lambda call: found.add(getattr(call.op, "name", "")), "Call")
    return found


def lanes_of(expr: PrimExpr) -> int:
    """Elements of a vector."""
    return int(str(dtype_of(expr)).partition("x")[2] or 1)


def as_bits(dtype: str, value: PrimExpr) -> PrimExpr:
    """The same bits as another dtype."""
    return value if str(dtype_of(value)) == dtype else tir.reinterpret(dtype, value)


def llvm(name: str, dtype: str, *args: PrimExpr) -> PrimExpr:
    """A call of an instruction by LLVM's name; 0.17 wants the number of arguments first."""
    count = () if GENERATION == "relax" else (tir.const(len(args), "uint32"),)
    return tir.call_llvm_pure_intrin(dtype, name, *count, *args)


def bytes_of(lanes: int) -> str:
    """The dtype of a dot product's operands as LLVM declares it, 0.27's LLVM 22 and 0.17's 10."""
    return f"int8x{4 * lanes}" if GENERATION == "relax" else f"int32x{lanes}"
