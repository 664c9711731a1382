"""Transposed convolutions: each element of the image is a window of the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..graph import OpCall
from ..tvm import dtype_of, te, tir
from ..tvm.types import Attrs, PrimExpr
from .attrs import Raw, conv2d_attrs, dtype, pair, plain
from .kind import Array, OpKind, form, in_both

if TYPE_CHECKING:
    from ..tvm.types import Tensor

SUMS = "out_elemwise_fusable"
_BY_TYPE = ("channels", "kernel_size")


@dataclass(frozen=True)
class Upsampling:
    """A transposed convolution of images [N, C, H, W]; one of rows is of images of height 1.

    Of a result's row `y`, `y + before = stride * a + phase`; it sums `image[a - t]` by row
    `phase + stride * t` of the kernel. Pairs are (vertical, horizontal).
    """

    batch: int
    channels: int
    image: tuple[int, int]
    window: tuple[int, int]
    out_channels: int
    out: tuple[int, int]
    strides: tuple[int, int]
    before: tuple[int, int]  # the padding above and on the left
    dilation: tuple[int, int]
    groups: int
    is_rows: bool
    added: tuple[int, int]  # to the result, below and on the right: `out` counts it

    @classmethod
    def of(cls, inputs: Sequence[tuple[int, ...]], out: Sequence[int], attrs: Attrs) -> Upsampling:
        """From the shapes of image, weight and result, and the op's attributes."""
        image, kernel = ([int(e) for e in shape] for shape in inputs)
        rows = len(image) == 3
        strides, dilation = pair(attrs["strides"]), pair(attrs["dilation"])
        before = pair(attrs["padding"][:2])
        if rows:
            strides, dilation, before = (1, strides[1]), (1, dilation[1]), (0, before[1])
        groups = int(attrs["groups"])
        return cls(
            image[0], image[1], _last_two(image), _last_two(kernel), kernel[1] * groups,
            _last_two(out), strides, before, dilation, groups, rows, pair(attrs["output_padding"]),
        )  # fmt: skip


def _last_two(shape: Sequence[int]) -> tuple[int, int]:
    """Height and width; of rows the height is 1."""
    height = shape[2] if len(shape) == 4 else 1
    return int(height), int(shape[-1])


def _compute(ins: Sequence[Tensor], call: OpCall) -> Tensor:
    """A convolution of the image with zeros between its elements; the kernel turned around."""
    x, weight = ins
    shape = call.outputs[0].shape
    u = Upsampling.of([x.shape, weight.shape], shape, call.attrs)
    reach = [(u.window[n] - 1) * u.dilation[n] for n in (0, 1)]
    first = [reach[n] - u.before[n] for n in (0, 1)]  # of the image's first element

    def spread(n: PrimExpr, c: PrimExpr, y: PrimExpr, z: PrimExpr) -> PrimExpr:
        at = [i - f for i, f in zip((y, z), first, strict=True)]
        inside = [
            tir.all(i >= 0, i < s * e, tir.floormod(i, s) == 0)
            for i, s, e in zip(at, u.strides, u.image, strict=True)
        ]
        where = [tir.floordiv(i, s) for i, s in zip(at, u.strides, strict=True)]
        value = x(n, c, *(where[1:] if u.is_rows else where))
        return tir.if_then_else(tir.all(*inside), value, tir.const(0, dtype_of(x)))

    sizes = [u.out[n] + reach[n] for n in (0, 1)]
    padded = te.compute((u.batch, u.channels, *sizes), spread, name=f"{call.name}_spread")
    per, out_per = u.channels // u.groups, u.out_channels // u.groups
    rc = te.reduce_axis((0, per), name="rc")
    ry, rx = (te.reduce_axis((0, u.window[n]), name=f"r{'yx'[n]}") for n in (0, 1))

    def element(n: PrimExpr, o: PrimExpr, *i: PrimExpr) -> PrimExpr:
        y, z = (0, *i) if u.is_rows else i
        channel = rc if u.groups == 1 else tir.floordiv(o, out_per) * per + rc
        data = padded(n, channel, y + ry * u.dilation[0], z + rx * u.dilation[1])
        taps = [u.window[0] - 1 - ry, u.window[1] - 1 - rx]
        own = o if u.groups == 1 else tir.floormod(o, out_per)
        factor = weight(channel, own, *(taps[1:] if u.is_rows else taps))
        return te.sum(data * factor, axis=[rc, ry, rx])

    return te.compute(shape, element, name=call.name)


def _numpy(ins: Sequence[Array], call: OpCall) -> Array:
    """Every element of the image adds its window to the result."""
    x, w = ins
    shape = call.outputs[0].shape
    u = Upsampling.of([x.shape, w.shape], shape, call.attrs)
    image = x.reshape(u.batch, u.groups, u.channels // u.groups, *u.image)
    kernel = w.reshape(u.groups, u.channels // u.groups, u.out_channels // u.groups, *u.window)
    whole = [
        max(
            (u.image[n] - 1) * u.strides[n] + (u.window[n] - 1) * u.dilation[n] + 1,
            u.before[n] + u.out[n],
        )
        for n in (0, 1)
    ]
    full = np.zeros((u.batch, u.out_channels, *whole), np.result_type(x, w))
    for ky, kx in np.ndindex(*u.window):
        added = np.einsum("ngihw,gio->ngohw", image, kernel[..., ky, kx])
        y, z = ky * u.dilation[0], kx * u.dilation[1]
        rows = slice(y, y + (u.image[0] - 1) * u.strides[0] + 1, u.strides[0])
        columns = slice(z, z + (u.image[1] - 1) * u.strides[1] + 1, u.strides[1])
        full[:, :, rows, columns] += added.reshape(u.batch, u.out_channels, *u.image)
    top, left = u.before
    return full[:, :, top : top + u.out[0], left : left + u.out[1]].reshape(shape)


def _attrs2d(raw: Raw) -> dict[str, tuple[int, ...]]:
    return {**conv2d_attrs(raw), "output_padding": pair(raw["output_padding"])}


def _attrs1d(raw: Raw) -> dict[str, tuple[int, ...]]:
    """In the form of two axes, of which the first says nothing."""
    one = {
        name: (unit, pair(raw[name])[1])
        for name, unit in (("strides", 1), ("dilation", 1), ("output_padding", 0))
    }
    left, right = pair(raw["padding"])
    rest = {name: plain(raw[name]) for name in ("data_layout", "kernel_layout", "groups")}
    out = plain(raw["out_layout"]) or rest["data_layout"]
    more = {"out_layout": out, "out_dtype": dtype(raw["out_dtype"])}
    return {**one, "padding": (0, left, 0, right), **rest, **more}


_ATTRS: dict[str, Any] = {
    "strides": (1, 1), "padding": (0, 0, 0, 0), "output_padding": (0, 0), "dilation": (1, 1),
    "groups": 1, "out_dtype": None,
}  # fmt: skip

KINDS = (
    OpKind(
        "conv2d_transpose",
        _compute,
        _numpy,
        inputs=2,
        attrs={**_ATTRS, "data_layout": "NCHW", "kernel_layout": "IOHW"},
        read_attrs=("out_layout",),
        relay=form("nn.conv2d_transpose", _attrs2d, idle=_BY_TYPE),
        relax=form("nn.conv2d_transpose", _attrs2d),
        fuses=SUMS,
        takes="x weight",
        doc=(
            "Each element of x [N, I, H, W] times weight [I, O / groups, H, W], added to the "
            "result [N, O, H, W] at strides: the gradient of conv2d."
        ),
    ),
    OpKind(
        "conv1d_transpose",
        _compute,
        _numpy,
        inputs=2,
        attrs={**_ATTRS, "data_layout": "NCW", "kernel_layout": "IOW"},
        read_attrs=("out_layout",),
        **in_both("nn.conv1d_transpose", _attrs1d, idle=_BY_TYPE),
        fuses=SUMS,
        takes="x weight",
        doc=(
            "Each element of x [N, I, W] times weight [I, O / groups, W], added to the result [N, "
            "O, W] at strides. Attributes are those of two axes, of which the first says nothing: "
            "strides=(1, 2), padding=(0, 1, 0, 1)."
        ),
    ),
)
