"""Relax: TVM's ONNX frontend, and TVM's own build of the whole model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._tvm import tvm


def from_onnx(model: Any) -> Any:
    """An ONNX model as an IRModule, its weights as constants."""
    from tvm.relax.frontend.onnx import from_onnx

    return from_onnx(model)


def default_build(mod: Any, target: Any) -> Any:
    """What a user without this library gets: the default pipeline."""
    return tvm.compile(mod, target)


def from_torch(module: Any, inputs: Sequence[Any]) -> Any:
    """A module of PyTorch, exported with these inputs, or a program that is."""
    import torch

    from ._relax_torch import converted

    with torch.no_grad():
        if isinstance(module, torch.export.ExportedProgram):
            return converted(module)
        return converted(torch.export.export(module, tuple(inputs)))
