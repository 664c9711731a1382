"""A graph of torch.fx with sizes and weights written into it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch import fx


def with_constants(module: Any, fixed: Mapping[int, Any]) -> Any:
    """A copy of the graph without these inputs, by position: tensors become buffers, sizes numbers.
    What it returns beside tensors is left out.
    """
    done = fx.GraphModule(module, copy.deepcopy(module.graph))
    inputs = done.graph.find_nodes(op="placeholder")
    for position, value in fixed.items():
        node = inputs[position]
        if isinstance(value, torch.Tensor):
            name = f"_held_{position}"
            done.register_buffer(name, value.detach())
            with done.graph.inserting_before(node):
                node.replace_all_uses_with(done.graph.get_attr(name))
        else:
            _replace(node, value)
        done.graph.erase_node(node)
    (last,) = done.graph.find_nodes(op="output")
    last.args = (tuple(n for n in last.args[0] if _is_tensor(n)),)
    done.recompile()
    return done.eval()


def _replace(node: Any, number: Any) -> None:
    """A number in place of a node."""

    def value(inner: Any) -> Any:
        return number if inner is node else inner

    for user in list(node.users):
        user.args, user.kwargs = (
            fx.node.map_arg(user.args, value),
            fx.node.map_arg(user.kwargs, value),
        )


def _is_tensor(result: Any) -> bool:
    return isinstance(result, fx.Node) and isinstance(result.meta.get("val"), torch.Tensor)
