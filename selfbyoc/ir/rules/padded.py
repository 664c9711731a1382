"""Rule of canonicalisation: a convolution of bytes with a level of its own around the image."""

from __future__ import annotations

from ...graph import OpCall
from ...tvm.types import Attr
from .rewriter import Rewrite, Rewriter, absorb

PAD = "nn.pad"
_BYTES = ("int8", "uint8")


def padded_conv2d(rw: Rewriter, call: OpCall) -> Rewrite | None:
    """conv2d(pad(x, value)) of bytes: the attribute `pad_value`, which kernels of bytes hold in
    their padding. What floats are padded by is zero, and part of the convolution since the model
    was simplified (simplify/padding.py).
    """
    pad = rw.producer(call.inputs[0], PAD) if call.kind == "conv2d" else None
    if pad is None or not rw.read_once(pad.outputs[0]) or why_outside(call, pad):
        return None
    (top, bottom), (left, right) = (_widths(call, pad)[letter] for letter in "HW")
    attrs = {**call.attrs, "padding": (top, left, bottom, right), "pad_value": int(_value(pad))}
    return [absorb(call, [pad], inputs=(pad.inputs[0], *call.inputs[1:]), attrs=attrs)], [pad]


def why_outside(conv: OpCall, pad: OpCall) -> str:
    """Why a convolution does not pad its image itself; empty: it may, where no other reads it."""
    widths, value = _widths(conv, pad), _value(pad)
    if value is None or pad.attrs["pad_mode"] != "constant":
        return "it does not pad by one number"
    if sorted(widths) != sorted("NCHW") or any((*widths["N"], *widths["C"])):
        return "it pads images, or channels"
    if conv.inputs[0].dtype not in _BYTES:
        return f"it pads by {value}, which is not what the padding of {conv.name} holds"
    return f"{conv.name} has padding of its own" if any(conv.attrs["padding"]) else ""


def _widths(call: OpCall, pad: OpCall) -> dict[str, tuple[int, int]]:
    return dict(zip(call.attrs["data_layout"], pad.attrs["pad_width"], strict=False))


def _value(pad: OpCall) -> Attr:
    """The number; Relax has it as an attribute."""
    return pad.inputs[1].scalar if len(pad.inputs) > 1 else pad.attrs["pad_value"]
