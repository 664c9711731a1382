"""`from_torch`: a model of PyTorch -> an IRModule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..common.optional import extra
from ..errors import InputError, SelfbyocError, one_line
from ..partition.source_names import Names, named_weights, with_names
from ..tvm.types import IRModule
from .generation import tvm_road

if TYPE_CHECKING:
    import torch


def from_torch(
    module: torch.nn.Module | torch.export.ExportedProgram | torch.jit.ScriptFunction,
    inputs: Sequence[torch.Tensor] = (),
) -> IRModule:
    """A PyTorch model as an IRModule of the installed TVM; weights are constants.

    module  a torch.nn.Module in eval mode; what torch.jit traced or scripted, whose branches are
            decided by the inputs; on Relax also a torch.export.ExportedProgram
    inputs  tensors, or one, to export it with: their shapes and dtypes are the result's; none for a
            program

    Where TVM's frontend gives an op another type than PyTorch, this one gives PyTorch's. Where the
    model returns None beside tensors, as for weights of attention that nobody asked for, the module
    returns the tensors alone.

    Raises InputError where PyTorch cannot export it or TVM's frontend cannot import it, with the
    op; MissingExtra without the package torch.
    """
    return with_names(imported(module, inputs), Names(weights=named_weights(_parameters(module))))


def _parameters(
    module: torch.nn.Module | torch.export.ExportedProgram | torch.jit.ScriptFunction,
) -> Iterator[tuple[str, np.ndarray]]:
    """By name; what torch.jit makes of a function has none."""
    torch, state = extra("torch"), getattr(module, "state_dict", dict)
    for name, value in (state() if callable(state) else state).items():
        is_plain = type(value) in (torch.Tensor, torch.nn.Parameter)
        if is_plain and value.dtype == torch.float32:
            yield name, value.detach().cpu().numpy()


def imported(
    module: torch.nn.Module | torch.export.ExportedProgram | torch.jit.ScriptFunction,
    inputs: Sequence[torch.Tensor],
    **how: object,
) -> IRModule:
    """`from_torch`, with what the generation at hand may be told besides."""
    torch = extra("torch")
    kinds = (torch.nn.Module, torch.export.ExportedProgram, torch.jit.ScriptFunction)
    if not isinstance(module, kinds):
        raise InputError(
            f"module: expected a torch.nn.Module or an ExportedProgram, found "
            f"{type(module).__name__}"
        )
    if getattr(module, "training", False):
        raise InputError("module: it is in training mode; call module.eval() first")
    if isinstance(inputs, torch.Tensor):  # as torch.jit.trace takes it; its rows are no inputs
        inputs = (inputs,)
    for number, value in enumerate(inputs):
        if not isinstance(value, torch.Tensor):
            kind = type(value).__name__
            raise InputError(f"inputs: expected tensors, found {kind} at {number}")
    try:
        return tvm_road.from_torch(module, inputs, **how)
    except (SelfbyocError, Warning):  # a warning that the user makes an error
        raise
    except Exception as err:  # PyTorch's exporter and TVM's frontend raise errors of many kinds
        op = op_of(err)
        at = f" at {op}" if op else ""
        raise InputError(f"the module cannot be imported{at}: {one_line(err)}") from err


def op_of(err: BaseException) -> str:
    """The op that an importer was at: the node that some function up the stack was given."""
    found, trace = "", err.__traceback__
    while trace is not None:
        node: Any = trace.tb_frame.f_locals.get("node")
        if hasattr(node, "target") and hasattr(node, "op"):
            found = str(node.target)
        trace = trace.tb_next
    return found
