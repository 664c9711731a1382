"""Relax: TVM's ONNX frontend, and TVM's own build of the whole model."""

from __future__ import annotations

from typing import Any

from .._tvm import tvm


def from_onnx(model: Any) -> Any:
    """An ONNX model as an IRModule, its weights as constants."""
    from tvm.relax.frontend.onnx import from_onnx

    return from_onnx(model)


def default_build(mod: Any, target: Any) -> Any:
    """What a user without this library gets: the default pipeline."""
    return tvm.compile(mod, target)
