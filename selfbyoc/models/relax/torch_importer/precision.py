"""Convolutions, products and norms of other floats than float32, which TVM's frontend (0.27) makes
float32, or does not take.

Of halves PyTorch rounds the result alone: sums are float32 there, and so they are here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tvm import relax

from ....tvm.types import Expr
from .images import CONVERTERS as IMAGES
from .node import Convert, Importing

if TYPE_CHECKING:
    import torch

_HALVES = ("float16", "bfloat16")


def _mm(node: torch.fx.Node, importer: Importing) -> Expr:
    x, y = (importer.env[each] for each in node.args)
    return importer.block_builder.emit(relax.op.matmul(x, y))


def _convolution(node: torch.fx.Node, importer: Importing) -> Expr:
    """As the frontend calls it, with a bias of the result's type."""
    dtype = _dtype(node)
    if dtype == "float32":
        return importer._convolution(node)
    emit, inner = importer.block_builder.emit, _inner(dtype)
    x, weight, bias = (_as(each, inner, importer) for each in node.args[:3])
    stride, padding, dilation, is_transposed, more, groups = node.args[3:9]
    sides = node.args[0].meta["val"].ndim - 2
    how: dict[str, Any] = {"strides": stride, "padding": padding, "dilation": dilation}
    axes = "DHW"[-sides:]
    kernel = f"{'IO' if is_transposed else 'OI'}{axes}"
    if is_transposed:
        how["output_padding"] = more
    name = f"conv{sides}d" + "_transpose" * bool(is_transposed)
    found = emit(
        getattr(relax.op.nn, name)(
            x, weight, **how, groups=groups, data_layout=f"NC{axes}", kernel_layout=kernel,
            out_dtype=inner,
        )
    )  # fmt: skip
    if bias is not None:
        found = emit(relax.op.add(found, relax.op.reshape(bias, (1, -1, *[1] * sides))))
    return found if inner == dtype else emit(relax.op.astype(found, dtype))


def _dtype(node: torch.fx.Node) -> str:
    value = node.meta["val"]
    first = value[0] if isinstance(value, (tuple, list)) else value
    return str(first.dtype).removeprefix("torch.")


def _as(given: torch.fx.Node | None, dtype: str, importer: Importing) -> Expr | None:
    if given is None:
        return None
    x = importer.env[given]
    return x if x.ty.dtype == dtype else importer.block_builder.emit(relax.op.astype(x, dtype))


def _batch_norm(node: torch.fx.Node, importer: Importing) -> Expr:
    """By statistics that it keeps, in one type: under autocast they are float32, and x is half."""
    dtype = _dtype(node)
    inner = _inner(dtype)
    if dtype == inner and _are_all(node.args[:5], dtype, importer):
        return importer._batch_norm_legit_no_training(node)
    emit = importer.block_builder.emit
    x, scale, shift, mean, variance = (_as(each, inner, importer) for each in node.args[:5])
    factor = emit(relax.op.rsqrt(relax.op.add(variance, relax.const(node.args[6], inner))))
    if scale is not None:
        factor = emit(relax.op.multiply(factor, scale))
    moved = emit(relax.op.negative(relax.op.multiply(mean, factor)))
    if shift is not None:
        moved = emit(relax.op.add(moved, shift))
    found = _scaled(x, _by_channel(factor, x), _by_channel(moved, x), importer)
    return found if inner == dtype else emit(relax.op.astype(found, dtype))


def _norm(of_frontend: Convert, parts: Callable[[torch.fx.Node, Expr], _Parts]) -> Convert:
    """A norm by the moments of x, of all its elements but those along the first axes."""

    def convert(node: torch.fx.Node, importer: Importing) -> Expr:
        dtype, given = _dtype(node), importer.env[node.args[0]]
        found = parts(node, given)
        is_known = dtype in found.known
        if is_known and _are_all([node.args[0], *found.factors], dtype, importer):
            return of_frontend(node, importer)
        emit, inner = importer.block_builder.emit, _inner(dtype)
        x = emit(relax.op.reshape(_as(node.args[0], inner, importer), found.shape))
        mean = emit(relax.op.mean(x, found.axes, keepdims=True))
        far = emit(relax.op.subtract(x, mean))
        square = emit(relax.op.mean(relax.op.multiply(far, far), found.axes, keepdims=True))
        near = relax.op.rsqrt(relax.op.add(square, relax.const(found.epsilon, inner)))
        done = emit(relax.op.reshape(relax.op.multiply(far, near), given.ty.shape))
        scale, shift = (_as(each, inner, importer) for each in found.factors)
        if found.is_by_channel:
            scale, shift = (None if f is None else _by_channel(f, given) for f in (scale, shift))
        done = _scaled(done, scale, shift, importer)
        return done if inner == dtype else emit(relax.op.astype(done, dtype))

    return convert


@dataclass(frozen=True)
class _Parts:
    """How a norm takes x apart: as an array of some shape, whose moments are along some axes; and
    the types that TVM has it of.
    """

    shape: Sequence[Any]
    axes: Sequence[int]
    factors: Sequence[torch.fx.Node | None]
    epsilon: float
    known: Sequence[str]
    is_by_channel: bool = False


def _of_layer(node: torch.fx.Node, x: Expr) -> _Parts:
    axes = list(range(-len(node.args[1]), 0))
    return _Parts(
        list(x.ty.shape.values), axes, node.args[2:4], node.args[4], ("float32", *_HALVES)
    )


def _of_group(node: torch.fx.Node, x: Expr) -> _Parts:
    batch, channels, *sides = x.ty.shape.values
    groups = node.args[6]
    shape = (batch, groups, channels // groups, *sides)
    axes = list(range(2, len(shape)))
    return _Parts(shape, axes, node.args[1:3], node.args[7], ("float32", "float16"), True)


def _by_channel(factor: Expr, x: Expr) -> Expr:
    return relax.op.reshape(factor, (-1, *[1] * (x.ty.ndim - 2)))


def _scaled(x: Expr, scale: Expr | None, shift: Expr | None, importer: Importing) -> Expr:
    emit = importer.block_builder.emit
    if scale is not None:
        x = emit(relax.op.multiply(x, scale))
    return x if shift is None else emit(relax.op.add(x, shift))


def _inner(dtype: str) -> str:
    """The type of the sums."""
    return "float32" if dtype in _HALVES else dtype


def _are_all(nodes: Sequence[torch.fx.Node | None], dtype: str, importer: Importing) -> bool:
    return all(importer.env[n].ty.dtype == dtype for n in nodes if n is not None)


CONVERTERS = {
    "_native_batch_norm_legit_no_training.default": _batch_norm,
    "convolution.default": _convolution,
    "mm.default": _mm,
    "native_layer_norm.default": _norm(IMAGES["native_layer_norm.default"], _of_layer),
    "native_group_norm.default": _norm(IMAGES["native_group_norm.default"], _of_group),
}
