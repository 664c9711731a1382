"""An op of ours in TIR, `selfbyoc.dot4`: the sum of the products of four bytes by four.

TVM vectorises what says that it can be, and leaves what it does not know as it is: so a schedule of
floats makes vectors of these products, and codegen/dot_products.py makes instructions of the
vectors. An instruction of LLVM's named at once would stay scalar: no loop of it is vectorised.
"""

from __future__ import annotations

from typing import Any

from tvm.ir import _ffi_api
from tvm.ir.op import register_op_attr

from ._tvm import GENERATION, dtype_of, tir, tvm

NAME = "selfbyoc.dot4"

_ffi_api.RegisterOp(NAME, "the sum of the products of four bytes by four")
register_op_attr(NAME, "TVectorizable", True)
register_op_attr(NAME, "TCallEffectKind", 1)  # pure
register_op_attr(NAME, "TScriptPrinterName", NAME)
_OP = tvm.ir.Op.get(NAME)


def dot4(unsigned: Any, signed: Any) -> Any:
    """Of the bytes of two int32: those of the first count 0 to 255, of the second -128 to 127."""
    return tir.call_intrin("int32", _OP, unsigned, signed)


def is_dot4(node: Any) -> bool:
    """Whether an expression is such a product."""
    return getattr(getattr(node, "op", None), "name", "") == NAME


def as_bits(dtype: str, value: Any) -> Any:
    """The same bits as another dtype."""
    return value if str(dtype_of(value)) == dtype else tir.reinterpret(dtype, value)


def intrinsic(name: str, dtype: str, *args: Any) -> Any:
    """A call of an instruction by LLVM's name; 0.17 wants the number of arguments first."""
    count = () if GENERATION == "relax" else (tir.const(len(args), "uint32"),)
    return tir.call_llvm_pure_intrin(dtype, name, *count, *args)


def bytes_of(lanes: int) -> str:
    """The dtype of a dot product's operands as LLVM declares it, 0.27's LLVM 22 and 0.17's 10."""
    return f"int8x{4 * lanes}" if GENERATION == "relax" else f"int32x{lanes}"
