"""What converters of ATen's ops read from a node of an exported program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from tvm import relax

from ....errors import InputError
from ....tvm.types import BlockBuilder, Expr
from ..algebra import Algebra, Extent

if TYPE_CHECKING:
    import torch

Shape: TypeAlias = "Sequence[int | torch.SymInt]"  # as PyTorch has it


class Importing(Protocol):
    """What converters ask of the importer: ours, and what it inherits from TVM's."""

    algebra: Algebra
    block_builder: BlockBuilder
    env: Mapping[torch.fx.Node, Expr]

    def known(self, node: torch.fx.Node) -> torch.Tensor | None: ...
    def extent(self, size: int | torch.SymInt) -> Extent | None: ...
    def extents(self, shape: Shape) -> list[Extent] | None: ...
    def _convert_data_type(self, text: str, env: Mapping[torch.fx.Node, Expr]) -> str: ...
    def _batch_norm_legit_no_training(self, node: torch.fx.Node) -> Expr: ...
    def _clamp(self, node: torch.fx.Node) -> Expr: ...
    def _convolution(self, node: torch.fx.Node) -> Expr: ...
    def _expand(self, node: torch.fx.Node) -> Expr: ...
    def _index_put(self, node: torch.fx.Node) -> Expr: ...
    def _index_tensor(self, node: torch.fx.Node) -> Expr: ...
    def _repeat(self, node: torch.fx.Node) -> Expr: ...
    def _slice(self, node: torch.fx.Node) -> Expr: ...


Convert: TypeAlias = Callable[["torch.fx.Node", Importing], Expr]


def argument(node: torch.fx.Node, place: int, name: str, default: Any = None) -> Any:
    """Of a call, by place or by name."""
    return node.args[place] if len(node.args) > place else node.kwargs.get(name, default)


def in_its_type(node: torch.fx.Node, importer: Importing, place: int = 0) -> Expr:
    """An argument, a tensor or a number, in the type that the result has in PyTorch."""
    return as_type(node.args[place], node.meta["val"].dtype, importer)


def as_type(given: torch.fx.Node | float, wanted: torch.dtype, importer: Importing) -> Expr:
    """A node or a number in a type of PyTorch's; an open size is a tensor of no axes."""
    dtype = importer._convert_data_type(str(wanted), importer.env)
    if isinstance(given, (int, float)):
        return relax.const(given, dtype)
    emit, x = importer.block_builder.emit, importer.env[given]
    if type(given.meta["val"]).__name__ == "SymInt":
        size = emit(relax.op.reshape(emit(relax.op.shape_to_tensor(relax.ShapeExpr([x]))), ()))
        return size if dtype == "int64" else emit(relax.op.astype(size, dtype))
    if given.meta["val"].dtype == wanted:
        return x
    return emit(relax.op.astype(x, dtype))


def refused(node: torch.fx.Node, text: str) -> InputError:
    """The error for what the frontend would take for something else."""
    return InputError(f"the module cannot be imported at {node.target}: {text}")
