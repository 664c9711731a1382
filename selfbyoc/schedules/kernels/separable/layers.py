"""Convolutions with what follows each of them, and which ones this family takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ....codegen.info.ops import Ops, OpView
from ....graph import OpCall
from ....ops import mathfn
from ....tvm import te, tir
from ....tvm.types import PrimExpr, Tensor
from ...steps.tensors import or_zero

MOST_COLOURS = 4  # channels of a picture, at most


def is_pointwise(conv: OpView | OpCall) -> bool:
    """Whether a convolution is one of each pixel."""
    attrs = conv.attrs
    plain = tuple(attrs["strides"]) == (1, 1) and not any(attrs["padding"]) and attrs["groups"] == 1
    return plain and tuple(conv.inputs[1].shape[2:]) == (1, 1)


def is_first(conv: OpView | OpCall) -> bool:
    """Whether a convolution reads a picture: few products, whose result is far larger."""
    return conv.attrs["groups"] == 1 and conv.inputs[0].shape[1] <= MOST_COLOURS


@dataclass(frozen=True)
class Layer:
    """A convolution with what follows it: a scale and a shift of each channel, activations."""

    conv: OpView
    weight: Tensor
    scale: Tensor | None
    shift: Tensor | None
    after: Sequence[OpView]
    tables: tuple[Tensor, ...] = ()  # what is computed for each channel

    @property
    def channels(self) -> int:
        """Channels that each result is a sum over."""
        return int(self.conv.inputs[1].shape[1])

    def applied(self, value: PrimExpr, channel: PrimExpr) -> PrimExpr:
        """The convolution's sum with all that follows."""
        value = value if self.scale is None else value * self.scale(channel)
        value = value if self.shift is None else value + self.shift(channel)
        for call in self.after:
            value = _activation(call, value)
        return value


def _activation(call: OpView, x: PrimExpr) -> PrimExpr:
    if call.kind == "relu":
        return tir.Max(tir.const(0, "float32"), x)  # in this order a NaN stays one
    if call.kind == "clip":
        low, high = (tir.const(call.attrs[name], "float32") for name in ("a_min", "a_max"))
        return mathfn.clamp(x, low, high)
    return _GATED[call.kind](x)


_GATED: dict[str, Callable[[PrimExpr], PrimExpr]] = {
    "hard_swish": mathfn.hard_swish,
    "silu": lambda x: x * mathfn.sigmoid(x),
}


def layers(ops: Ops, args: Mapping[str, Tensor], names: Sequence[str], hidden: int) -> list[Layer]:
    """The convolutions in order; `names` are the ends of their arguments' names, as in `w_expand`.
    The tables of all but the last have at least so many values of `hidden` channels.
    """
    groups: list[list[OpView]] = []
    for call in ops:
        if call.kind == "conv2d":
            groups.append([])
        groups[-1].append(call)
    least = [hidden] * (len(names) - 1) + [0]
    parts = zip(groups, names, least, strict=True)
    return [_layer(group, args, name, least) for group, name, least in parts]


def _layer(group: Sequence[OpView], args: Mapping[str, Tensor], name: str, least: int) -> Layer:
    conv, *rest = group
    after = tuple(call for call in rest if call.kind in ("relu", "clip", *_GATED))
    norm = next((call for call in rest if call.kind == "batch_norm"), None)
    bias, scale = args.get(f"b_{name}"), None
    normed: tuple[Tensor, ...] = ()
    if norm is not None:
        scale, bias = normed = _norm(norm, args, name, bias)
    channels = int(conv.outputs[0].shape[1])
    scale, shift = (
        t if t is None else _table(t, channels, least, conv.name) for t in (scale, bias)
    )
    computed = {t.op: t for t in (*normed, scale, shift) if t is not None}
    return Layer(conv, args[f"w_{name}"], scale, shift, after, tuple(computed.values()))


def _norm(
    norm: OpView, args: Mapping[str, Tensor], name: str, bias: Tensor | None
) -> tuple[Tensor, Tensor]:
    """A batch norm (and the bias before it) as a scale and a shift."""
    gamma, beta, mean, var = (args[f"{of}_{name}"] for of in ("gamma", "beta", "mean", "var"))
    epsilon = tir.const(norm.attrs["epsilon"], "float32")
    scale = te.compute(
        gamma.shape, lambda c: gamma(c) / te.sqrt(var(c) + epsilon), name=f"{norm.name}_scale"
    )

    def shift(c: PrimExpr) -> PrimExpr:
        centre = mean(c) if bias is None else mean(c) - bias(c)
        return beta(c) - centre * scale(c)

    return scale, te.compute(gamma.shape, shift, name=f"{norm.name}_shift")


def _table(values: Tensor, channels: int, least: int, name: str) -> Tensor:
    """A value for each channel, and zeros up to the least number of them."""
    if channels >= least:
        return values
    return te.compute(
        (least,),
        lambda c: or_zero(c, channels, least, values),
        name=f"{name}_{values.op.name}",
    )
