"""GELU as importers spell it out -> PyTorch's own, in a torch.fx graph."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


def join_gelu(torch: ModuleType, graph: torch.fx.Graph) -> None:
    """x / sqrt(2) -> erf -> + 1 -> * x -> * 0.5 is one call in PyTorch."""
    for node in [n for n in graph.nodes if n.target is torch.erf]:
        x, root = _operands(node.args[0], torch.div)
        plus, one = _reader(node, torch.add)
        product, factor = _reader(plus, torch.mul)
        half, scale = _reader(product, torch.mul)
        is_root = isinstance(root, float) and abs(root**2 - 2) < 1e-5
        if x is None or x is not factor or not is_root or (one, scale) != (1.0, 0.5):
            continue
        with graph.inserting_before(half):
            half.replace_all_uses_with(graph.call_function(torch.nn.functional.gelu, (x,)))
    graph.eliminate_dead_code()


def _operands(node: torch.fx.Node, function: Callable[..., torch.Tensor]) -> tuple[Any, Any]:
    """Of a call of a function; else nothing."""
    return node.args if getattr(node, "target", None) is function else (None, None)


def _reader(node: torch.fx.Node, function: Callable[..., torch.Tensor]) -> tuple[Any, Any]:
    """The only call that reads a value, and what else that reads; else nothing."""
    readers = list(node.users) if node is not None else []
    if len(readers) != 1 or readers[0].target is not function:
        return None, None
    others = [arg for arg in readers[0].args if arg is not node]
    return readers[0], others[0] if len(others) == 1 else None
