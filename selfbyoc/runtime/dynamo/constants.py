"""A graph of torch.fx with sizes and weights written into it."""

from __future__ import annotations

import copy
import operator
from collections.abc import Collection, Mapping, Sequence

import torch
from torch import fx

from .sizes import Place

_size = torch.ops.aten.sym_size.int


def with_constants(
    module: torch.fx.GraphModule,
    fixed: Mapping[int, torch.Tensor | int],
    sizes: Mapping[int, Place],
    equal: Collection[Sequence[Place]],
) -> torch.fx.GraphModule:
    """A copy of the graph without these inputs, by position: tensors become buffers, sizes numbers,
    and open sizes what is asked of the tensor that has them; extents that are `equal` are said to
    be. What it returns beside tensors is left out.

    A view is a reshape in it: attention's results lie otherwise once it is taken apart.
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
    if sizes or equal:
        after_inputs = done.graph.find_nodes(op="placeholder")[-1].next
        with done.graph.inserting_before(after_inputs):
            _ask_tensors(done.graph, inputs, sizes, equal)
    (last,) = done.graph.find_nodes(op="output")
    last.args = (tuple(n for n in last.args[0] if _is_tensor(n)),)
    for node in done.graph.find_nodes(op="call_function", target=torch.ops.aten.view.default):
        node.target = torch.ops.aten.reshape.default
    done.recompile()
    return done.eval()


def _ask_tensors(
    graph: fx.Graph,
    inputs: Sequence[torch.fx.Node],
    sizes: Mapping[int, Place],
    equal: Collection[Sequence[Place]],
) -> None:
    def size(place: Place) -> torch.fx.Node:
        return graph.call_function(_size, (inputs[place[0]], place[1]))

    for position, place in sizes.items():
        found = size(place)
        inputs[position].replace_all_uses_with(found, lambda user, own=found: user is not own)
        if place[0] != position:  # a count is an extent of its own input
            graph.erase_node(inputs[position])
    for first, *others in equal:
        for other in others:
            is_equal = graph.call_function(operator.eq, (size(first), size(other)))
            graph.call_function(torch._check, (is_equal,))


def _replace(node: torch.fx.Node, number: int) -> None:
    """A number in place of a node."""

    def value(inner: torch.fx.Node) -> int:
        return number if inner is node else inner

    for user in list(node.users):
        user.args, user.kwargs = (
            fx.node.map_arg(user.args, value),
            fx.node.map_arg(user.kwargs, value),
        )


def _is_tensor(result: torch.fx.Node) -> bool:
    return isinstance(result, fx.Node) and isinstance(result.meta.get("val"), torch.Tensor)
