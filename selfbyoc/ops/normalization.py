"""Normalisations: softmax, layer_norm, rms_norm, batch_norm, lrn."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..graph import OpCall
from .attrs import Raw, must, only, plain
from .kind import Array, OpKind, along, form, in_both
from .reduce import batch_norm, layer_norm, lrn, rms_norm, softmax
from .softmax import NAN_TOO

SUMS = "out_elemwise_fusable"
_AFFINE = {"center": must(True), "scale": must(True)}  # gamma and beta count


def _numpy_softmax(ins: Sequence[Array], call: OpCall) -> Array:
    axis = call.attrs["axis"]
    peak = ins[0].max(axis=axis, keepdims=True)
    if not call.attrs.get("guarded"):
        e = np.exp(ins[0] - peak)
        return e / e.sum(axis=axis, keepdims=True)
    e = np.exp(ins[0] - np.maximum(peak, np.finfo(peak.dtype).min))
    total = e.sum(axis=axis, keepdims=True)
    found = e / np.maximum(total, 1)
    is_zero = call.attrs["guarded"] == NAN_TOO and np.isnan(total)
    return np.where(is_zero, np.float32(0), found).astype(found.dtype)


def _numpy_layer_norm(ins: Sequence[Array], call: OpCall) -> Array:
    x, gamma, beta = ins
    axis = call.attrs["axis"]
    centred = x - x.mean(axis=axis, keepdims=True)
    normal = centred / np.sqrt((centred**2).mean(axis=axis, keepdims=True) + call.attrs["epsilon"])
    return normal * along(gamma, axis, x.ndim) + along(beta, axis, x.ndim)


def _numpy_rms_norm(ins: Sequence[Array], call: OpCall) -> Array:
    (x, gamma), axis = ins, call.attrs["axis"]
    squares = (x**2).mean(axis=axis, keepdims=True)
    return x / np.sqrt(squares + call.attrs["epsilon"]) * along(gamma, axis, x.ndim)


def _of_axes(raw: Raw) -> dict[str, float]:
    axes = plain(raw["axes"])
    return {"axis": axes[0] if len(axes) == 1 else axes, **only("epsilon")(raw)}


def _numpy_batch_norm(ins: Sequence[Array], call: OpCall) -> list[Array]:
    x, gamma, beta, mean, var = ins
    rows = [along(v, call.attrs["axis"], x.ndim) for v in (gamma, beta, mean, var)]
    out = (x - rows[2]) / np.sqrt(rows[3] + call.attrs["epsilon"]) * rows[0] + rows[1]
    return [out, mean, var]


def _numpy_lrn(ins: Sequence[Array], call: OpCall) -> Array:
    (x,), a = ins, call.attrs
    half = a["size"] // 2
    pads = [(half, half) if i == a["axis"] % x.ndim else (0, 0) for i in range(x.ndim)]
    view = np.lib.stride_tricks.sliding_window_view(np.pad(x**2, pads), a["size"], axis=a["axis"])
    return x / (a["bias"] + a["alpha"] * view.sum(axis=-1) / a["size"]) ** a["beta"]


KINDS = (
    OpKind(
        "softmax",
        softmax,
        _numpy_softmax,
        attrs={"axis": -1},
        read_attrs=("guarded",),  # as softmax.Softmax has it
        **in_both("nn.softmax", only("axis")),
        fuses=SUMS,
        takes="x",
        doc="e ** x / sum(e ** x), summed along the axis; computed with the largest subtracted.",
    ),
    OpKind(
        "layer_norm",
        layer_norm,
        _numpy_layer_norm,
        inputs=3,
        attrs={"axis": -1, "epsilon": 1e-5},
        relay=form("nn.layer_norm", only("axis", "epsilon"), needs=_AFFINE),
        relax=form("nn.layer_norm", _of_axes, needs=_AFFINE),
        fuses=SUMS,
        takes="x gamma beta",
        doc=(
            "(x - mean(x)) / sqrt(variance(x) + epsilon) * gamma + beta, mean and variance along "
            "the axis."
        ),
    ),
    OpKind(
        "rms_norm",
        rms_norm,
        _numpy_rms_norm,
        inputs=2,
        attrs={"axis": -1, "epsilon": 1e-5},
        relax=form("nn.rms_norm", _of_axes),
        fuses=SUMS,
        takes="x gamma",
        doc="x / sqrt(mean(x ** 2) + epsilon) * gamma, the mean along the axis.",
        spelled={
            "relay": "multiply(multiply(x, rsqrt(add(mean(multiply(x, x)), epsilon))), gamma)"
        },
    ),
    OpKind(
        "batch_norm",
        batch_norm,
        _numpy_batch_norm,
        inputs=5,
        attrs={"axis": 1, "epsilon": 1e-5},
        relay=form("nn.batch_norm", only("axis", "epsilon"), needs=_AFFINE),
        relax=form(
            "nn.batch_norm",
            only("axis", "epsilon"),
            needs={**_AFFINE, "training": must(False)},
            idle=("momentum",),  # of the statistics that training keeps
        ),
        fuses=(SUMS, "injective"),
        takes="x gamma beta mean variance",
        doc=(
            "(x - mean) / sqrt(variance + epsilon) * gamma + beta, with vectors along the axis, as "
            "in inference. Three results: this one is `op.batch_norm(...)[0]`, mean and variance "
            "follow."
        ),
    ),
    OpKind(
        "lrn",
        lrn,
        _numpy_lrn,
        attrs={"size": 5, "axis": 1, "bias": 2.0, "alpha": 1e-5, "beta": 0.75},
        relay=form("nn.lrn", only("size", "axis", "bias", "alpha", "beta")),
        takes="x",
        doc=(
            "x / (bias + alpha / size * s) ** beta, where s is the sum of x ** 2 over `size` "
            "neighbours along the axis."
        ),
        spelled={"relax": "the ops that importers write it as, a pool of squares; read only"},
    ),
)
