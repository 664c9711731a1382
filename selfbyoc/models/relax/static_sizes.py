"""Which sizes of an exported graph are the number of keys, or of tokens: by running it without
numbers at other ones. A graph says these as integers among others, and a hidden size may be equal.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...common.optional import extra
from ...errors import InputError

if TYPE_CHECKING:
    import torch

_SIZED = ("view", "_unsafe_view", "reshape", "expand")  # their second argument is sizes


def extents(node: torch.fx.Node) -> list[int]:
    """The shape that a node's result was exported with, open sizes as those of the example."""
    shape = getattr(node.meta.get("val"), "shape", ())
    return [int(e) if isinstance(e, int) else int(e.node.hint) for e in shape]


def is_open(node: torch.fx.Node, axis: int) -> bool:
    """Whether the graph is of any size there."""
    return not isinstance(node.meta["val"].shape[axis], int)


def with_sizes(
    graph: torch.fx.Graph,
    inputs: Mapping[torch.fx.Node, Sequence[int]],
    seeds: Mapping[int, torch.fx.Node],
) -> None:
    """Write open sizes where a graph has numbers.

    inputs  placeholders whose sizes are others now
    seeds   what ends of `arange(end)` are by now; the nodes' own values say what sizes are theirs

    Raises InputError for an op that makes one size of an open one and another.
    """
    torch = extra("torch")
    fake = torch._subclasses.FakeTensorMode()
    values: dict[Any, Any] = {}
    with fake:
        for node in graph.nodes:
            if node.op == "placeholder":
                shape, dtype = inputs.get(node, extents(node)), node.meta["val"].dtype
                values[node] = torch.empty(shape, dtype=dtype)
            elif node.op == "call_function":
                _resize(node, values, seeds)
                args, kwargs = (
                    torch.fx.node.map_arg(x, values.__getitem__) for x in (node.args, node.kwargs)
                )
                values[node] = node.target(*args, **kwargs)


def _resize(
    node: torch.fx.Node, values: Mapping[torch.fx.Node, Any], seeds: Mapping[int, torch.fx.Node]
) -> None:
    name = getattr(getattr(node.target, "overloadpacket", None), "__name__", "")
    if name == "arange" and node.args[0] == 0 and node.args[1] in seeds:
        node.args = (0, seeds[node.args[1]], *node.args[2:])
    if name not in _SIZED:
        return
    if name != "expand":  # what is a view of one token may be none of several
        node.target = extra("torch").ops.aten.reshape.default
    x, sizes = node.args[0], list(node.args[1])
    before, wanted = extents(x), extents(node)
    marks = {values[size]: size for size in seeds.values() if size in values}
    for axis, extent in enumerate(values[x].shape):
        if extent == before[axis] or extent not in marks:
            continue
        places = _places(before, wanted, axis, name == "expand")
        if not places:
            raise InputError(
                f"module: {node.target} makes {wanted} of {before}: axis {axis}, of keys or of "
                "tokens, is no axis of the result"
            )
        sizes[places[0]] = marks[extent]
    node.args = (x, sizes, *node.args[2:])


def _places(before: Sequence[int], wanted: Sequence[int], axis: int, is_spread: bool) -> list[int]:
    """Where an axis may be by now, the likelier first; an axis of a batch is that of tokens only
    where no other one is.
    """
    if is_spread:
        return [axis + len(wanted) - len(before)]
    inner = math.prod(before[:axis])
    found = [
        n
        for n, extent in enumerate(wanted)
        if extent == before[axis] and math.prod(wanted[:n]) == inner
    ]
    return sorted(found, key=lambda n: (n == 0, n))
