"""Products: dense, batched, convolution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..graph import OpCall
from ..tvm import te
from ..tvm.types import PrimExpr
from .attrs import Raw, conv2d_attrs, dtype, only
from .kind import Array, OpKind, broadcast, form
from .numpy_windows import conv2d as numpy_conv2d
from .windows import conv2d

if TYPE_CHECKING:
    from ..tvm.types import Tensor

SUMS = "out_elemwise_fusable"
_BY_TYPE = ("channels", "kernel_size")


def _dense(ins: Sequence[Tensor], call: OpCall) -> Tensor:
    x, weight = ins
    k = te.reduce_axis((0, int(x.shape[-1])), name="k")
    dtype = call.outputs[0].dtype
    return te.compute(
        call.outputs[0].shape,
        lambda *i: te.sum(x(*i[:-1], k).astype(dtype) * weight(i[-1], k).astype(dtype), axis=k),
        name=call.name,
    )


def _numpy_dense(ins: Sequence[Array], call: OpCall) -> Array:
    x, w = _to_sum(ins, call)
    return x @ w.T


def _to_sum(ins: Sequence[Array], call: OpCall) -> list[Array]:
    """Integers in the dtype of the result: NumPy would sum in their own."""
    if not np.issubdtype(ins[0].dtype, np.integer):
        return list(ins)
    return [array.astype(call.outputs[0].dtype) for array in ins]


def _batch_matmul(ins: Sequence[Tensor], call: OpCall) -> Tensor:
    a, b = ins
    turn_a, turn_b = call.attrs["transpose_a"], call.attrs["transpose_b"]
    k = te.reduce_axis((0, int(a.shape[-2 if turn_a else -1])), name="k")
    dtype = call.outputs[0].dtype

    def element(*i: PrimExpr) -> PrimExpr:
        batch, m, n = i[:-2], i[-2], i[-1]
        left = broadcast(a, (*batch, k, m) if turn_a else (*batch, m, k))
        right = broadcast(b, (*batch, n, k) if turn_b else (*batch, k, n))
        return te.sum(left.astype(dtype) * right.astype(dtype), axis=k)

    return te.compute(call.outputs[0].shape, element, name=call.name)


def _numpy_batch_matmul(ins: Sequence[Array], call: OpCall) -> Array:
    a, b = _to_sum(ins, call)
    a = a.swapaxes(-1, -2) if call.attrs["transpose_a"] else a
    b = b.swapaxes(-1, -2) if call.attrs["transpose_b"] else b
    return a @ b


def _out_dtype(raw: Raw) -> dict[str, str | None]:
    return {"out_dtype": dtype(raw["out_dtype"])}


def _batch_matmul_attrs(raw: Raw) -> dict[str, int | None]:
    return {**only("transpose_a", "transpose_b")(raw), **_out_dtype(raw)}


KINDS = (
    OpKind(
        "dense",
        _dense,
        _numpy_dense,
        inputs=2,
        attrs={"out_dtype": None},
        relay=form("nn.dense", _out_dtype, idle=("units",)),
        fuses=SUMS,
        takes="x weight",
        doc="x @ weight.T: x is [..., k], weight [units, k], the result [..., units].",
        spelled={"relax": "matmul(x, permute_dims(weight))"},
    ),
    OpKind(
        "batch_matmul",
        _batch_matmul,
        _numpy_batch_matmul,
        inputs=2,
        attrs={"transpose_a": False, "transpose_b": False, "out_dtype": None},
        read_attrs=("may_round_to",),  # of a product that a model has in it; by half_factor
        relay=form("nn.batch_matmul", _batch_matmul_attrs),
        fuses=SUMS,
        takes="x y",
        doc=(
            "x @ y of the last two axes; the axes before them are broadcast. Where transpose_b is "
            "set, y is [..., n, k]."
        ),
        spelled={"relax": "matmul, with permute_dims where an input is transposed"},
    ),
    OpKind(
        "conv2d",
        conv2d,
        numpy_conv2d,
        inputs=2,
        attrs={
            "strides": (1, 1), "padding": (0, 0, 0, 0), "dilation": (1, 1), "groups": 1,
            "data_layout": "NCHW", "kernel_layout": "OIHW", "out_dtype": None,
        },
        read_attrs=("out_layout", "pad_value"),
        relay=form("nn.conv2d", conv2d_attrs, idle=_BY_TYPE),
        relax=form("nn.conv2d", conv2d_attrs),
        fuses=SUMS,
        takes="x weight",
        doc=(
            "The sum of x * weight over input channels and window, at each place of the window: x "
            "is [N, C, H, W], weight [O, C / groups, H, W], the result [N, O, H, W], in the "
            "layouts below."
        ),
    ),
    # Only ever read as others.
    OpKind("matmul", inputs=2, relax=form("matmul", _out_dtype), fuses=SUMS),
    OpKind("qnn_conv2d", inputs=6, relay=form("qnn.conv2d", conv2d_attrs, idle=_BY_TYPE)),
)  # fmt: skip
