"""Relay: TVM's ONNX frontend, and TVM's own build of the whole model."""

from __future__ import annotations

from typing import Any

from tvm import relay

from .._tvm import tvm


def from_onnx(model: Any) -> Any:
    """An ONNX model as an IRModule, its weights as constants."""
    return relay.frontend.from_onnx(model, freeze_params=True)[0]


def default_build(mod: Any, target: Any) -> Any:
    """What a user without this library gets: relay.build with TOPI's schedules."""
    with tvm.transform.PassContext(opt_level=3):
        return relay.build(mod, target=target)
