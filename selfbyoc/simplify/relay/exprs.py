"""Relay: what passes ask of expressions."""

from __future__ import annotations

import numpy as np
from tvm import relay

from ...tvm import constant_numpy
from ...tvm.types import Expr


def name_of(expr: Expr) -> str:
    """The name of an op that is called; none for anything else."""
    return str(getattr(expr.op, "name", "")) if isinstance(expr, relay.Call) else ""


def array_of(expr: Expr) -> np.ndarray | None:
    """What a constant holds; None for any other."""
    return constant_numpy(expr) if isinstance(expr, relay.Constant) else None
