"""Relay: a loop is a function within main, and no composite takes what is inside."""

from __future__ import annotations

from collections.abc import Mapping

from ...tvm import tvm


def apart(mod: tvm.IRModule) -> dict[str, tvm.IRModule]:
    """No function is the step of a loop."""
    return {}


def with_steps(mod: tvm.IRModule, parts: Mapping[str, tvm.IRModule]) -> tvm.IRModule:
    """The module: it has none."""
    return mod


def kernels(mod: tvm.IRModule) -> set[str]:
    """No step calls any."""
    return set()
