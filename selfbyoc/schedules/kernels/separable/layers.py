"""Convolutions in blocks of 16 channels: packed weights, and what follows each convolution."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...._tvm import te, tir
from ....compute import mathfn
from ....language.decisions import choose
from ..conv.direct import extents

COLOURS = 4  # channels of a picture, at most
LANES = 16  # channels of a block: one AVX-512 vector, two of AVX2

Tensor = Any


def blocks_of(channels: int) -> int:
    """Blocks that hold so many channels."""
    return -(-channels // LANES)


def pack_weight(weight: Tensor) -> Tensor:
    """[O, I, H, W] -> [O/16, I, H, W, 16], zeros behind the last channel."""
    channels, *inner = extents(weight)

    def element(b: Any, i: Any, y: Any, x: Any, lane: Any) -> Any:
        return _or_zero(b * LANES + lane, channels, lambda c: weight(c, i, y, x))

    shape = (blocks_of(channels), *inner, LANES)
    return te.compute(shape, element, name=f"{weight.op.name}_packed")


def fold_of(out: int, channels: int) -> int:
    """Steps of a sum over `channels` that lie side by side in a vector: two, where that fills whole
    vectors and saves a quarter of them. 24 outputs are two vectors, of which one is half empty;
    with two steps, three (24x56x56 133 us instead of 141). 40 outputs take 97 us instead of 92,
    20, which fill none, 140 instead of 127; and four steps LLVM 22 loads lane by lane (580 us).
    """
    full = channels % 2 == 0 and 2 * out % LANES == 0
    usual = 2 if full and 4 * blocks_of(2 * out) <= 6 * blocks_of(out) else 1
    return choose("steps_side_by_side", (1, 2) if full else (1,), usual)


def pack_folded(weight: Tensor) -> Tensor:
    """[O, I, 1, 1] -> [O*f/16, I/f, 1, 1, 16]: lane o*f + j of step k holds channel k*f + j.

    A vector of the image is then f neighbouring channels, repeated: a broadcast of 64 bits.
    """
    out, channels, *_ = extents(weight)
    fold = fold_of(out, channels)

    def element(b: Any, k: Any, y: Any, x: Any, lane: Any) -> Any:
        at = b * LANES + lane
        step = k * fold + tir.floormod(at, fold)
        return _or_zero(at, out * fold, lambda at: weight(tir.floordiv(at, fold), step, y, x))

    shape = (blocks_of(out * fold), channels // fold, 1, 1, LANES)
    return te.compute(shape, element, name=f"{weight.op.name}_folded")


def unfolded(weight: Tensor, out: int, channels: int) -> Tensor:
    """What `pack_folded` packed as `pack_weight` would have."""
    fold = channels // int(weight.shape[1])

    def element(b: Any, i: Any, y: Any, x: Any, lane: Any) -> Any:
        def read(channel: Any) -> Any:
            at = channel * fold + tir.floormod(i, fold)
            where = (tir.floordiv(at, LANES), tir.floordiv(i, fold), y, x)
            return weight(*where, tir.floormod(at, LANES))

        return _or_zero(b * LANES + lane, out, read)

    shape = (blocks_of(out), channels, 1, 1, LANES)
    return te.compute(shape, element, name=f"{weight.op.name}_unfolded")


def _or_zero(channel: Any, channels: int, read: Callable[[Any], Any]) -> Any:
    """What is read of a channel, zero behind the last one."""
    if channels % LANES == 0:
        return read(channel)
    return tir.if_then_else(channel < channels, read(channel), tir.const(0, "float32"))


def is_pointwise(conv: Any) -> bool:
    """Whether a convolution is one of each pixel."""
    attrs = conv.attrs
    plain = tuple(attrs["strides"]) == (1, 1) and not any(attrs["padding"]) and attrs["groups"] == 1
    return plain and tuple(conv.inputs[1].shape[2:]) == (1, 1)


def is_first(conv: Any) -> bool:
    """Whether a convolution reads a picture: few products, whose result is far larger."""
    return conv.attrs["groups"] == 1 and conv.inputs[0].shape[1] <= COLOURS


@dataclass(frozen=True)
class Layer:
    """A convolution with what follows it: a scale and a shift of each channel, activations."""

    conv: Any
    weight: Tensor
    scale: Tensor | None
    shift: Tensor | None
    after: Sequence[Any]

    @property
    def channels(self) -> int:
        """Channels that each result is a sum over."""
        return int(self.conv.inputs[1].shape[1])

    def applied(self, value: Any, channel: Any) -> Any:
        """The convolution's sum with all that follows."""
        value = value if self.scale is None else value * self.scale(channel)
        value = value if self.shift is None else value + self.shift(channel)
        for call in self.after:
            value = _activation(call, value)
        return value


def _activation(call: Any, x: Any) -> Any:
    if call.kind == "relu":
        return tir.Max(tir.const(0, "float32"), x)  # in this order a NaN stays one
    if call.kind == "clip":
        low, high = (tir.const(call.attrs[name], "float32") for name in ("a_min", "a_max"))
        return mathfn.clamp(x, low, high)
    assert call.kind == "silu", call.kind
    return x * mathfn.sigmoid(x)


def layers(ops: Any, args: Mapping[str, Tensor], names: Sequence[str]) -> list[Layer]:
    """The convolutions in order; `names` are the ends of their arguments' names, as in
    `w_expand`.
    """
    groups: list[list[Any]] = []
    for call in ops:
        if call.kind == "conv2d":
            groups.append([])
        groups[-1].append(call)
    return [_layer(group, args, name) for group, name in zip(groups, names, strict=True)]


def _layer(group: Sequence[Any], args: Mapping[str, Tensor], name: str) -> Layer:
    conv, *rest = group
    after = [call for call in rest if call.kind in ("relu", "clip", "silu")]
    norm = next((call for call in rest if call.kind == "batch_norm"), None)
    bias, channels = args.get(f"b_{name}"), int(conv.outputs[0].shape[1])
    scale = None
    if norm is not None:
        scale, bias = _norm(norm, args, name, bias)
    scale, shift = (t if t is None else _table(t, channels, conv.name) for t in (scale, bias))
    return Layer(conv, args[f"w_{name}"], scale, shift, after)


def _norm(
    norm: Any, args: Mapping[str, Tensor], name: str, bias: Tensor | None
) -> tuple[Tensor, Tensor]:
    """A batch norm (and the bias before it) as a scale and a shift."""
    gamma, beta, mean, var = (args[f"{of}_{name}"] for of in ("gamma", "beta", "mean", "var"))
    epsilon = tir.const(norm.attrs["epsilon"], "float32")
    scale = te.compute(
        gamma.shape, lambda c: gamma(c) / te.sqrt(var(c) + epsilon), name=f"{norm.name}_scale"
    )

    def shift(c: Any) -> Any:
        centre = mean(c) if bias is None else mean(c) - bias(c)
        return beta(c) - centre * scale(c)

    return scale, te.compute(gamma.shape, shift, name=f"{norm.name}_shift")


def _table(values: Tensor, channels: int, name: str) -> Tensor:
    """A value for each lane of whole blocks."""
    if channels % LANES == 0:
        return values
    return te.compute(
        (blocks_of(channels) * LANES,),
        lambda c: _or_zero(c, channels, values),
        name=f"{name}_{values.op.name}",
    )
