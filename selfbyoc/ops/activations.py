"""Activations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..graph import OpCall
from ..tvm import dtype_of, tir
from ..tvm.types import Attrs
from . import mathfn as M
from .attrs import only
from .elementwise import erf, unary
from .kind import Array, OpKind, form, in_both, with_attrs

if TYPE_CHECKING:
    from ..tvm.types import PrimExpr


def _leaky_relu(x: PrimExpr, attrs: Attrs) -> PrimExpr:
    return tir.Select(x > 0, x, x * tir.const(attrs["alpha"], dtype_of(x)))


def _numpy_leaky_relu(ins: Sequence[Array], call: OpCall) -> Array:
    return np.where(ins[0] > 0, ins[0], ins[0] * call.attrs["alpha"])


def _numpy_gelu_tanh(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def _numpy_silu(x: Array) -> Array:
    with np.errstate(over="ignore"):  # e^-x is inf where this is 0
        return x / (1 + np.exp(-x))


KINDS = (
    unary(
        "gelu",
        "x * (1 + erf(x / sqrt(2))) / 2.",
        M.gelu,
        lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2))),
        relax=form("nn.gelu"),
        spelled={"relay": "x * 0.5 * (erf(x / sqrt(2)) + 1)"},
    ),
    unary(
        "gelu_tanh",
        "x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3))) / 2.",
        M.gelu_tanh,
        _numpy_gelu_tanh,
        relax=form("nn.gelu_tanh"),
        spelled={"relay": "x * 0.5 * (tanh((x + 0.044715 * x ** 3) * sqrt(2 / pi)) + 1)"},
    ),
    unary(
        "hard_swish",
        "x * min(max(x + 3, 0), 6) / 6.",
        M.hard_swish,
        lambda x: x * np.clip(x + 3, 0, 6) / 6,
        spelled=dict.fromkeys(("relax", "relay"), "x * clip(x + 3, 0, 6) / 6"),
    ),
    OpKind(
        "leaky_relu",
        with_attrs(_leaky_relu),
        _numpy_leaky_relu,
        attrs={"alpha": 0.01},
        relay=form("nn.leaky_relu", only("alpha")),
        relax=form("nn.leakyrelu", only("alpha")),
        fuses="elemwise",
        takes="x",
        doc="x where x > 0, else alpha * x.",
    ),
    # In this order a NaN stays one.
    unary(
        "relu",
        "max(x, 0).",
        lambda a: tir.Max(tir.const(0, dtype_of(a)), a),
        lambda x: np.maximum(x, np.zeros((), x.dtype)),
        **in_both("nn.relu"),
    ),
    unary(
        "silu",
        "x * sigmoid(x).",
        M.silu,
        _numpy_silu,
        relax=form("nn.silu"),
        spelled={"relay": "multiply(x, sigmoid(x))"},
    ),
)
