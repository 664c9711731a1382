"""What converters of ATen's ops read from a node of an exported program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tvm import relax

from ....errors import InputError
from ....tvm.types import Expr

if TYPE_CHECKING:
    import torch


def argument(node: torch.fx.Node, place: int, name: str, default: Any = None) -> Any:
    """Of a call, by place or by name."""
    return node.args[place] if len(node.args) > place else node.kwargs.get(name, default)


def in_its_type(node: torch.fx.Node, importer: Any, place: int = 0) -> Expr:
    """An argument, a tensor or a number, in the type that the result has in PyTorch."""
    return as_type(node.args[place], node.meta["val"].dtype, importer)


def as_type(given: Any, wanted: Any, importer: Any) -> Expr:
    """A node or a number in a type of PyTorch's."""
    dtype = importer._convert_data_type(str(wanted), importer.env)
    if isinstance(given, (int, float)):
        return relax.const(given, dtype)
    x = importer.env[given]
    if given.meta["val"].dtype == wanted:
        return x
    return importer.block_builder.emit(relax.op.astype(x, dtype))


def refused(node: torch.fx.Node, text: str) -> InputError:
    """The error for what the frontend would take for something else."""
    return InputError(f"the module cannot be imported at {node.target}: {text}")
