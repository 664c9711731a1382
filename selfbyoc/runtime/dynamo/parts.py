"""A graph cut at the ops that no library computes: PyTorch runs those, and what is around them is
compiled.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from ...models.torch_checks import draws

Values = Sequence[torch.Tensor | int]
Nodes = Sequence[torch.fx.Node]
# One of these is worth a library; of others it takes two.
_WORTH_IT = ("mm", "conv", "attention", "norm", "softmax")
_FEW = 2
_VIEWS = frozenset((
    "alias", "detach", "diagonal", "expand", "permute", "select", "slice", "split",
    "split_with_sizes", "squeeze", "t", "transpose", "unbind", "unsqueeze", "view", "_unsafe_view",
))  # fmt: skip


@dataclass(frozen=True)
class Part:
    """Some nodes of a graph as one of their own; it takes and returns nodes of the whole."""

    module: torch.fx.GraphModule
    takes: Nodes
    returns: Nodes
    is_ours: bool


class Parts:
    """The parts of a graph, called one after the other."""

    def __init__(
        self,
        module: torch.fx.GraphModule,
        parts: Iterable[tuple[Part, Callable[[list[Any]], Values]]],
    ) -> None:
        self._inputs = module.graph.find_nodes(op="placeholder")
        self._results = _results(module)
        self._steps: list[tuple[Nodes, Callable[[list[Any]], Values], Nodes, Nodes]] = []
        read = {r for r in self._results if isinstance(r, fx.Node)}
        for part, compute in reversed(list(parts)):
            last = [n for n in {*part.takes, *part.returns} if n not in read]
            self._steps.insert(0, (part.takes, compute, part.returns, last))
            read.update(part.takes)

    def __call__(self, *given: torch.Tensor | int) -> Values:
        """The graph's results. A value is let go once nobody reads it again."""
        values = dict(zip(self._inputs, given, strict=True))
        del given
        for takes, compute, returns, last in self._steps:
            values.update(zip(returns, compute([values[n] for n in takes]), strict=True))
            for node in last:
                del values[node]
        return [values[r] if isinstance(r, fx.Node) else r for r in self._results]


def parts_of(
    module: torch.fx.GraphModule, left: Collection[torch.fx.Node], weights: Collection[int]
) -> list[Part]:
    """A graph cut at these nodes, in order; none where nothing is left that is worth a library.

    `weights` are the positions of inputs of which a library makes constants.
    """
    left = {*left, *filter(draws, module.graph.nodes)}
    while True:
        levels = _levels(module, left, weights)
        ours = [nodes for level, nodes in levels.items() if level % 2 == 0]
        idle = [node for nodes in ours if not _is_worth_it(nodes) for node in nodes]
        if not idle:
            break
        left.update(idle)
    if not ours:
        return []
    groups = [(levels[level], level % 2 == 0) for level in sorted(levels)]
    placed = {node for nodes, _ in groups for node in nodes}
    results = [r for r in _results(module) if isinstance(r, fx.Node) and r.op == "call_function"]
    groups.append(([r for r in dict.fromkeys(results) if r not in placed], False))
    order = {node: n for n, node in enumerate(module.graph.nodes)}
    takes = [sorted(_taken(nodes, placed), key=order.__getitem__) for nodes, _ in groups]
    read = {*results, *(node for taken in takes for node in taken)}
    return [
        _part(module, nodes, taken, [n for n in nodes if n in read], is_ours)
        for (nodes, is_ours), taken in zip(groups, takes, strict=True)
        if nodes
    ]


def _results(module: torch.fx.GraphModule) -> list[Any]:
    (last,) = module.graph.find_nodes(op="output")
    return list(last.args[0])


def _levels(
    module: torch.fx.GraphModule, left: Collection[torch.fx.Node], weights: Collection[int]
) -> dict[int, list[torch.fx.Node]]:
    """The nodes by how often one changes between those that are compiled, at even levels, and those
    that are not, from the inputs to them. Those that cost nothing have no level: each part that
    reads one has it again.
    """
    inputs = module.graph.find_nodes(op="placeholder")
    constant = {node for place, node in enumerate(inputs) if place in weights}
    level: dict[torch.fx.Node, int] = {}
    found: dict[int, list[torch.fx.Node]] = {}
    placed: set[torch.fx.Node] = set()
    drawn = 1
    for node in module.graph.nodes:
        before = level[node] = max((level[n] for n in node.all_input_nodes), default=0)
        if node.op != "call_function":
            constant.update([node] if node.op == "get_attr" else [])
            continue
        is_whole = node.target is operator.getitem and node.args[0] in placed
        if not is_whole and node not in left:
            if all(n in constant for n in node.all_input_nodes):
                constant.add(node)
                continue
            if _is_view(node) or _is_size(node):
                continue
        if not is_whole:
            level[node] = before + (before % 2 != (node in left))
        if draws(node):  # in the order in which they are written
            drawn = level[node] = max(level[node], drawn)
        found.setdefault(level[node], []).append(node)
        placed.add(node)
    return found


def _is_view(node: torch.fx.Node) -> bool:
    is_one = node.target is operator.getitem or _name(node) in _VIEWS
    return is_one and node.meta.get("val") is not None


def _is_size(node: torch.fx.Node) -> bool:
    """Whether a node is arithmetic of sizes."""
    if not isinstance(node.meta.get("val"), (int, torch.SymInt, torch.SymFloat, torch.SymBool)):
        return False
    is_asked = _name(node).startswith("sym_")
    return is_asked or not any(
        isinstance(n.meta.get("val"), torch.Tensor) for n in node.all_input_nodes
    )


def _name(node: torch.fx.Node) -> str:
    """The name of an ATen op; none for anything else."""
    return getattr(getattr(node.target, "overloadpacket", None), "__name__", "")


def _is_worth_it(nodes: Nodes) -> bool:
    names = list(filter(None, map(_name, nodes)))
    return len(names) >= _FEW or any(word in name for name in names for word in _WORTH_IT)


def _taken(nodes: Nodes, placed: Collection[torch.fx.Node]) -> list[torch.fx.Node]:
    """What a part is given: inputs of the graph, and nodes of other parts."""
    own, seen = set(nodes), set()
    found: list[torch.fx.Node] = []
    waiting = [n for node in nodes for n in node.all_input_nodes]
    while waiting:
        node = waiting.pop()
        if node in seen or node in own:
            continue
        seen.add(node)
        if node.op == "placeholder" or node in placed:
            found.append(node)
        else:
            waiting += node.all_input_nodes
    return found


def _part(
    module: torch.fx.GraphModule, nodes: Nodes, takes: Nodes, returns: Nodes, is_ours: bool
) -> Part:
    graph, inside = fx.Graph(), {}
    for node in takes:
        inside[node] = graph.placeholder(node.name)
        inside[node].meta = dict(node.meta)

    def copied(node: torch.fx.Node) -> torch.fx.Node:
        if node not in inside:
            for each in node.all_input_nodes:
                copied(each)
            inside[node] = graph.node_copy(node, copied)
        return inside[node]

    for node in nodes:
        copied(node)
    graph.output(tuple(inside[n] for n in returns))
    return Part(fx.GraphModule(module, graph), takes, returns, is_ours)
