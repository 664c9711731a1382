"""A program with static caches as one step with open ones, and whether both compute the same."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...common.optional import extra
from ...errors import InputError
from .static_sizes import extents, is_open, with_sizes

if TYPE_CHECKING:
    import torch

_TOTAL, _COUNT = 10007, 7919  # keys and tokens where sizes are looked for: primes, no model's sizes
_CALLS = 4  # that a program is tried with
_NEAR = 1e-3  # of the largest logit: the order of sums changes less, another mask more


@dataclass(frozen=True)
class Static:
    """An exported program in ATen's core ops, and what its nodes are.

    puts    of each cache its placeholder, and the op that puts rows into it
    ids, positions      its inputs
    """

    program: torch.export.ExportedProgram
    puts: Sequence[tuple[torch.fx.Node, torch.fx.Node]]
    ids: torch.fx.Node
    positions: torch.fx.Node

    @property
    def caches(self) -> list[torch.fx.Node]:
        """The placeholders of the buffers."""
        return [place for place, _ in self.puts]

    @property
    def bound(self) -> int:
        """Rows of a cache."""
        return extents(self.caches[0])[2]

    @property
    def count(self) -> int | None:
        """Tokens of a call; None for any number."""
        return None if is_open(self.ids, 1) else extents(self.ids)[1]

    @property
    def logits(self) -> str:
        """The name of the node that is returned."""
        names = self.program.graph_signature.user_outputs
        return next(name for name in names if isinstance(name, str))

    @property
    def held(self) -> dict[str, tuple[str, torch.Tensor]]:
        """By a placeholder's name what the program calls it, and its value."""
        signature, every = self.program.graph_signature, dict(self.program.state_dict)
        every |= self.program.constants
        named = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
        named |= signature.inputs_to_lifted_tensor_constants
        return {name: (of, every[of]) for name, of in named.items()}

    @staticmethod
    def shape(cache: torch.fx.Node, rows: int) -> list[int]:
        """Of a cache of so many rows."""
        shape = extents(cache)
        return [*shape[:2], rows, *shape[3:]]


def step_of(static: Static) -> torch.fx.GraphModule:
    """The program's graph, changed to one of ids and caches -> logits and caches.

    Raises InputError where it gives other logits than before, and for sizes that cannot be open.
    """
    torch, graph = extra("torch"), static.program.graph
    ids, wanted = _tried(static)
    logits = next(node for node in graph.nodes if node.name == static.logits)
    past, count, total = _counted(static)
    _join(static, past, total)
    tokens = _COUNT if static.count else extents(static.ids)[1]
    inputs = {x: static.shape(x, _TOTAL - tokens) for x in static.caches}
    seeds = {static.bound: total, **({static.count: count} if static.count else {})}
    with_sizes(graph, {**inputs, static.ids: [1, tokens]}, seeds)
    graph.output_node().args = ((logits, *(put for _, put in static.puts)),)
    weights = _within(static)
    _drop_unread(graph)
    step = torch.fx.GraphModule(weights, graph)
    _check_same(step, [torch.zeros(static.shape(x, 0)) for x in static.caches], ids, wanted)
    return step


def _tried(static: Static) -> tuple[torch.Tensor, torch.Tensor]:
    """Some tokens, and the logits of the last one by the program as it is, call by call."""
    torch, count, program = extra("torch"), static.count or 1, static.program
    calls = min(_CALLS, static.bound // count)
    ids = torch.arange(calls * count)[None] % 2
    given = {name: value for name, (_, value) in static.held.items()}
    given |= {x.name: torch.zeros(extents(x)) for x in static.caches}
    results = [spec.arg.name for spec in program.graph_signature.output_specs]
    runner, found = torch.fx.Interpreter(program.graph_module), dict[str, Any]()
    for start in range(0, calls * count, count):
        at = torch.arange(start, start + count)
        given[static.ids.name] = ids[:, start : start + count]
        given[static.positions.name] = at.reshape(*extents(static.positions)[:-1], count)
        inputs = [given[x.name] for x in program.graph.find_nodes(op="placeholder")]
        found = dict(zip(results, runner.run(*inputs), strict=True))
        given |= {place.name: found[put.name] for place, put in static.puts}
    return ids, found[static.logits][0, -1]


def _check_same(
    step: torch.fx.GraphModule,
    caches: Sequence[torch.Tensor],
    ids: torch.Tensor,
    wanted: torch.Tensor,
) -> None:
    """A step that is fed all tokens but one, and then that one, gives these logits."""
    _, *caches = step(ids[:, :-1], *caches)
    logits, *_ = step(ids[:, -1:], *caches)
    error = float((logits[0, -1] - wanted).abs().max() / wanted.abs().max())
    if not error <= _NEAR:
        raise InputError(
            "model: expected a mask and places that follow from cache_position, as of a causal "
            f"model: without the rows of caches that are not filled, logits differ by {error:.2g}"
        )


def _counted(static: Static) -> tuple[torch.fx.Node, torch.fx.Node, torch.fx.Node]:
    """Nodes for how many tokens were before, are at hand, and are there then."""
    graph, size = static.program.graph, extra("torch").ops.aten.sym_size.int
    *_, last = graph.find_nodes(op="placeholder")
    with graph.inserting_after(last):
        past = graph.call_function(size, (static.caches[0], 2))
    with graph.inserting_after(past):
        count = graph.call_function(size, (static.ids, 1))
    with graph.inserting_after(count):
        total = graph.call_function(operator.add, (past, count))
    return past, count, total


def _join(static: Static, past: torch.fx.Node, total: torch.fx.Node) -> None:
    """Put what is new behind what there is; positions follow from how much that is."""
    graph, aten = static.program.graph, extra("torch").ops.aten
    for place, put in static.puts:
        put.target, put.args, put.kwargs = aten.cat.default, ([place, put.args[2]], 2), {}
    with graph.inserting_after(total):
        at = graph.call_function(aten.arange.start_step, (past, total))
    at.meta = static.positions.meta
    if len(extents(static.positions)) == 2:
        with graph.inserting_after(at):
            at = graph.call_function(aten.unsqueeze.default, (at, 0))
        at.meta = static.positions.meta
    static.positions.replace_all_uses_with(at)


def _within(static: Static) -> dict[str, torch.Tensor]:
    """Weights are the graph's own, and inputs the ids and the caches, in this order."""
    graph, root, held = static.program.graph, dict[str, Any](), static.held
    inputs = [static.ids, *static.caches]
    for node in graph.find_nodes(op="placeholder"):
        if node in inputs or node.name not in held:
            continue
        name, value = held[node.name]
        root[name] = value
        with graph.inserting_before(node):
            own = graph.create_node("get_attr", name)
        own.meta = node.meta
        node.replace_all_uses_with(own)
        graph.erase_node(node)
    named = static.program.graph_signature.inputs_to_buffers
    first = next(iter(graph.nodes))
    for node in inputs:
        node.target = named.get(node.name, node.target).replace(".", "_")
        first.prepend(node)
    return root


def _drop_unread(graph: torch.fx.Graph) -> None:
    """What nobody reads, checks of PyTorch's own and the input of positions too."""
    for node in reversed(graph.nodes):
        is_check = str(node.target).startswith(("aten._assert", "aten.sym_constrain"))
        if not node.users and (node.op == "call_function" or is_check):
            graph.erase_node(node)
    for node in graph.find_nodes(op="placeholder"):
        if not node.users:
            graph.erase_node(node)
