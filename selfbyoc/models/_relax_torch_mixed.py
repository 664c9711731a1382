"""Arithmetic and comparisons of different types. TVM's frontend (0.27) computes in the type of the
tensor: half an integer is an integer there, and an integer times 0.5 is zero.
"""

from __future__ import annotations

from typing import Any

from tvm import relax

from ._relax_torch_node import argument, as_type, in_its_type


def _arithmetic(kind: Any) -> Any:
    """`kind` in the type of the result; `alpha` is a factor of the second operand."""

    def convert(node: Any, importer: Any) -> Any:
        x, y = (in_its_type(node, importer, place) for place in (0, 1))
        alpha = argument(node, 2, "alpha", 1)
        if alpha != 1:
            factor = relax.const(alpha, y.ty.dtype)
            y = importer.block_builder.emit(relax.op.multiply(y, factor))
        return importer.block_builder.emit(kind(x, y))

    return convert


def _comparison(kind: Any) -> Any:
    """`kind` in the type that both operands have in common."""

    def convert(node: Any, importer: Any) -> Any:
        import torch

        values = [n if isinstance(n, (int, float)) else n.meta["val"] for n in node.args[:2]]
        common = torch.result_type(*values)
        x, y = (as_type(n, common, importer) for n in node.args[:2])
        return importer.block_builder.emit(kind(x, y))

    return convert


def _any(node: Any, importer: Any) -> Any:
    """Whether something is not zero, along axes or at all; the frontend takes the largest."""
    emit, given = importer.block_builder.emit, node.args[0]
    x, axes = importer.env[given], argument(node, 1, "dim")
    keeps = bool(argument(node, 2, "keepdim", False))
    if str(given.meta["val"].dtype) != "torch.bool":
        x = emit(relax.op.not_equal(x, relax.const(0, x.ty.dtype)))
    if given.meta["val"].ndim == 0:
        return x
    found = relax.op.max(relax.op.astype(x, "int8"), axes or None, keepdims=keeps)
    return emit(relax.op.astype(emit(found), "bool"))


_ARITHMETIC = {
    "add": relax.op.add, "sub": relax.op.subtract, "mul": relax.op.multiply,
    "div": relax.op.divide, "remainder": relax.op.floor_mod, "fmod": relax.op.mod,
}  # fmt: skip
_COMPARISONS = {
    "eq": relax.op.equal, "ne": relax.op.not_equal, "lt": relax.op.less,
    "le": relax.op.less_equal, "gt": relax.op.greater, "ge": relax.op.greater_equal,
}  # fmt: skip
CONVERTERS = {
    **{f"{n}.{o}": _arithmetic(k) for n, k in _ARITHMETIC.items() for o in ("Tensor", "Scalar")},
    **{f"{n}.{o}": _comparison(k) for n, k in _COMPARISONS.items() for o in ("Tensor", "Scalar")},
    **dict.fromkeys(("any.default", "any.dim", "any.dims"), _any),
    "maximum.default": _arithmetic(relax.op.maximum),
    "minimum.default": _arithmetic(relax.op.minimum),
    "pow.Tensor_Tensor": _arithmetic(relax.op.power),
}
