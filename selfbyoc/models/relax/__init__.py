"""Relax: TVM's ONNX frontend, and TVM's own build of the whole model."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ...tvm import tvm
from ...tvm.types import Executable, IRModule, Target
from ..sizes import Asked

if TYPE_CHECKING:
    import onnx
    import torch


def from_onnx(model: onnx.ModelProto, most: Mapping[str, int]) -> IRModule:
    """An ONNX model as an IRModule, its weights as constants, its nodes' names as spans. `most`:
    the largest sizes of symbols that somebody promises.
    """
    from .onnx_importer import imported

    return imported(model, most)


def onnx_ops() -> frozenset[str]:
    """The ops that there is a converter of."""
    from .onnx_importer import known_ops

    return known_ops()


def default_build(mod: IRModule, target: Target) -> Executable:
    """What a user without this library gets: the default pipeline."""
    return tvm.compile(mod, target)


def sized(mod: IRModule, shapes: Mapping[str, tuple[int, ...]], where: str) -> IRModule:
    """The module with these shapes for its inputs, where its sizes are symbols."""
    from .sizes import sized

    return sized(mod, shapes, where)


def limited(mod: IRModule, sizes: Mapping[str, Asked], where: str) -> IRModule:
    """The module with these sizes for its symbols, or these ranges."""
    from .sizes import limited

    return limited(mod, sizes, where)


def from_torch(
    module: torch.nn.Module | torch.export.ExportedProgram | torch.jit.ScriptFunction,
    inputs: Sequence[torch.Tensor],
    bare: bool = False,
    dims: Sequence[dict[int, torch.export.Dim] | None] | None = None,
) -> IRModule:
    """A module of PyTorch, exported with these inputs, or a program that is. `bare`: what it
    returns, if that is one tensor, is no tuple of one, which takes 2 us to take apart. `dims`: of
    each input the sizes that stay open, as torch.export takes them.
    """
    import torch

    from .torch_importer import converted, exported_script

    with torch.no_grad(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*LeafSpec", FutureWarning)  # of PyTorch's own copies
        if isinstance(module, torch.export.ExportedProgram):
            return converted(module, bare)
        if isinstance(module, (torch.jit.ScriptModule, torch.jit.ScriptFunction)):
            module = exported_script(module, inputs)
        shapes = None if dims is None else tuple(dims)
        return converted(torch.export.export(module, tuple(inputs), dynamic_shapes=shapes), bare)
