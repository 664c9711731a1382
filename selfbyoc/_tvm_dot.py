"""Ops of ours in TIR: the sum of the products of four bytes by four, and such sums added up.

TVM vectorises what says that it can be, and leaves what it does not know as it is: so a schedule of
floats makes vectors of these products, and TVM's own LowerIntrin asks codegen/dot_products.py for
the instructions. One of LLVM's named at once would stay scalar: no loop of it is vectorised.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.ir import _ffi_api
from tvm.ir.op import register_op_attr

from ._tvm import GENERATION, dtype_of, tir, tvm

NAME = "selfbyoc.dot4"

Lowering = Callable[[Any, Any, Any], Any]  # of sums, unsigned and signed bytes


def _registered(name: str) -> Any:
    _ffi_api.RegisterOp(name, "the sum of the products of four bytes by four")
    register_op_attr(name, "TVectorizable", True)
    register_op_attr(name, "TCallEffectKind", 1)  # pure
    register_op_attr(name, "TScriptPrinterName", name)
    return tvm.ir.Op.get(name)


_DOT4 = _registered(NAME)


def dot4(unsigned: Any, signed: Any) -> Any:
    """Of the bytes of two int32: those of the first count 0 to 255, of the second -128 to 127."""
    return tir.call_intrin("int32", _DOT4, unsigned, signed)


def is_dot4(node: Any) -> bool:
    """Whether an expression is such a product."""
    return getattr(getattr(node, "op", None), "name", "") == NAME


def instruction(name: str, lowering: Lowering) -> Callable[..., Any]:
    """`sums + dot4(...)` as an op that is lowered so where its loops are vectors; -> a function of
    sums and both operands.
    """
    full = f"{NAME}.{name}"
    op = _registered(full)
    register = tir.register_intrin_lowering if GENERATION == "relax" else _register_in_relay
    register(full, target="default", f=lambda call: lowering(*call.args), level=99)
    return lambda *args: tir.call_intrin("int32", op, *args)


def _register_in_relay(name: str, **how: Any) -> None:
    tvm.ir.register_intrin_lowering(name, **how)


def lanes_of(expr: Any) -> int:
    """Elements of a vector."""
    return int(str(dtype_of(expr)).partition("x")[2] or 1)


def as_bits(dtype: str, value: Any) -> Any:
    """The same bits as another dtype."""
    return value if str(dtype_of(value)) == dtype else tir.reinterpret(dtype, value)


def llvm(name: str, dtype: str, *args: Any) -> Any:
    """A call of an instruction by LLVM's name; 0.17 wants the number of arguments first."""
    count = () if GENERATION == "relax" else (tir.const(len(args), "uint32"),)
    return tir.call_llvm_pure_intrin(dtype, name, *count, *args)


def bytes_of(lanes: int) -> str:
    """The dtype of a dot product's operands as LLVM declares it, 0.27's LLVM 22 and 0.17's 10."""
    return f"int8x{4 * lanes}" if GENERATION == "relax" else f"int32x{lanes}"
