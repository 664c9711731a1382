"""A functional graph as PyTorch runs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import fx

from .results import with_strides
from .sizes import Symbol, layout_at


class CannotRun(Exception):
    """PyTorch raises where it runs a functional graph: of what it raises for dynamo's own graph,
    if it does, the user hears.
    """


class ByPyTorch:
    """A functional graph that PyTorch runs."""

    def __init__(self, module: torch.fx.GraphModule) -> None:
        self._module = module
        self._is_as_traced = False

    def __call__(self, *given: torch.Tensor | int) -> Sequence[torch.Tensor | int]:
        """The results. Raises CannotRun."""
        if not self._is_as_traced:
            try:
                return self._as_it_is(*given)
            except Exception:  # PyTorch's ops raise what they like
                self._is_as_traced = True
        try:
            return self._traced(*given)
        except Exception as err:  # the same
            self._is_as_traced = False
            raise CannotRun from err

    def _as_it_is(self, *given: torch.Tensor | int) -> Sequence[torch.Tensor | int]:
        return list(self._module.forward(*given))

    def _traced(self, *given: torch.Tensor | int) -> Sequence[torch.Tensor | int]:
        return list(AsTraced(self._module, given).run(*given))


class AsTraced(fx.Interpreter):
    """Runs a graph whose values lie as PyTorch says that they do.

    Along an axis of one element a tensor of memory has now and then another stride than tracing
    gave it (PyTorch 2.13), and ops that were chosen for the one refuse the other: where tracing saw
    a contiguous tensor, it left the copy away that `native_group_norm` wants.
    """

    def __init__(self, module: torch.fx.GraphModule, given: Sequence[torch.Tensor | int]) -> None:
        super().__init__(module)
        self._symbols = symbols_of(module, given)

    def run_node(self, node: torch.fx.Node) -> Any:
        """What a node computes, in the strides that it was traced with."""
        return self._laid(super().run_node(node), node.meta.get("val"))

    def _laid(self, found: Any, traced: Any) -> Any:
        if isinstance(found, (tuple, list)) and isinstance(traced, (tuple, list)):
            pairs = zip(found, traced, strict=False)
            return type(found)(self._laid(f, t) for f, t in pairs)
        if not (isinstance(found, torch.Tensor) and isinstance(traced, torch.Tensor)):
            return found
        layout = layout_at(traced, self._symbols)
        if layout is None or layout == (tuple(found.shape), found.stride()):
            return found
        return with_strides(found, layout[1]) if layout[0] == tuple(found.shape) else found


def symbols_of(
    module: torch.fx.GraphModule, given: Sequence[torch.Tensor | int]
) -> Mapping[Symbol, int]:
    """What the symbols of a graph's inputs are."""
    found: dict[Symbol, int] = {}
    placeholders = module.graph.find_nodes(op="placeholder")
    for node, value in zip(placeholders, given, strict=True):
        traced = node.meta.get("val")
        pairs = [(traced, value)]
        if isinstance(traced, torch.Tensor) and isinstance(value, torch.Tensor):
            pairs = list(zip(traced.shape, value.shape, strict=True))
        for size, number in pairs:
            if isinstance(size, torch.SymInt):
                found[size.node.expr] = int(number)
    return found
