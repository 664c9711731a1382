"""Relay: what passes ask of expressions."""

from __future__ import annotations

from typing import Any

from tvm import relay

from ...tvm import constant_numpy


def name_of(expr: Any) -> str:
    """The name of an op that is called; none for anything else."""
    return str(getattr(expr.op, "name", "")) if isinstance(expr, relay.Call) else ""


def array_of(expr: Any) -> Any:
    """What a constant holds; None for any other."""
    return constant_numpy(expr) if isinstance(expr, relay.Constant) else None
