"""Arithmetic and comparisons of different types. TVM's frontend (0.27) computes in the type of the
tensor: half an integer is an integer there, and an integer times 0.5 is zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tvm import relax

from ....tvm.types import Expr
from .node import Convert, Importing, argument, as_type, in_its_type

if TYPE_CHECKING:
    import torch


def _arithmetic(kind: Callable[..., Expr]) -> Convert:
    """`kind` in the type of the result; `alpha` is a factor of the second operand."""

    def convert(node: torch.fx.Node, importer: Importing) -> Expr:
        x, y = (in_its_type(node, importer, place) for place in (0, 1))
        alpha = argument(node, 2, "alpha", 1)
        if alpha != 1:
            factor = relax.const(alpha, y.ty.dtype)
            y = importer.block_builder.emit(relax.op.multiply(y, factor))
        return importer.block_builder.emit(kind(x, y))

    return convert


def _comparison(kind: Callable[..., Expr]) -> Convert:
    """`kind` in the type that both operands have in common."""

    def convert(node: torch.fx.Node, importer: Importing) -> Expr:
        import torch

        if node.args[0] is node.args[1] and kind in _NOT_A_NUMBER:  # which TVM simplifies away
            return importer.block_builder.emit(_NOT_A_NUMBER[kind](importer.env[node.args[0]]))
        values = [n if isinstance(n, (int, float)) else n.meta["val"] for n in node.args[:2]]
        common = torch.result_type(*values)
        x, y = (as_type(n, common, importer) for n in node.args[:2])
        return importer.block_builder.emit(kind(x, y))

    return convert


def _any(node: torch.fx.Node, importer: Importing) -> Expr:
    """Whether something is not zero, along axes or at all; the frontend takes the largest."""
    emit, given = importer.block_builder.emit, node.args[0]
    x, axes = importer.env[given], argument(node, 1, "dim")
    keeps = bool(argument(node, 2, "keepdim", False))
    if str(given.meta["val"].dtype) != "torch.bool":
        x = emit(relax.op.not_equal(x, relax.const(0, x.ty.dtype)))
    if given.meta["val"].ndim == 0:
        return x
    axes = None if axes in (None, [], ()) else axes
    found = relax.op.max(relax.op.astype(x, "int8"), axes, keepdims=keeps)
    return emit(relax.op.astype(emit(found), "bool"))


def _limit(kind: Callable[..., Expr], place: int, name: str) -> Convert:
    """One limit alone; the frontend gives integers an infinite one, too."""

    def convert(node: torch.fx.Node, importer: Importing) -> Expr:
        limit = as_type(argument(node, place, name), node.meta["val"].dtype, importer)
        return importer.block_builder.emit(kind(in_its_type(node, importer), limit))

    return convert


def _clamp(node: torch.fx.Node, importer: Importing) -> Expr:
    low, high = (argument(node, n + 1, name) for n, name in enumerate(("min", "max")))
    if low is None:
        return _limit(relax.op.minimum, 2, "max")(node, importer)
    if high is None:
        return _limit(relax.op.maximum, 1, "min")(node, importer)
    return importer._clamp(node)


def _is_number(x: Expr) -> Expr:
    return relax.op.logical_not(relax.op.isnan(x))


_NOT_A_NUMBER = {relax.op.not_equal: relax.op.isnan, relax.op.equal: _is_number}
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
    "clamp.default": _clamp,
    "clamp_min.default": _limit(relax.op.maximum, 1, "min"),
    "clamp_max.default": _limit(relax.op.minimum, 1, "max"),
    "maximum.default": _arithmetic(relax.op.maximum),
    "minimum.default": _arithmetic(relax.op.minimum),
    "pow.Tensor_Tensor": _arithmetic(relax.op.power),
}
