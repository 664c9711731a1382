"""Which ops of a graph no library computes: each is built alone, of what it is given."""

from __future__ import annotations

import operator
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import fx

from ...errors import SelfbyocError, one_line
from .functional import AsTraced, CannotRun
from .options import Options
from .specialised import Specialised

Culprits = dict[torch.fx.Node, str]  # with what the compiler says of each


def culprits_of(
    module: torch.fx.GraphModule,
    given: Sequence[torch.Tensor | int],
    options: Options,
    reason: str,
) -> Culprits:
    """The nodes that cannot be built, those first of whose ops a reason speaks; none where each op
    by itself can be.
    """
    every = [n for n in module.graph.nodes if isinstance(n.target, torch._ops.OperatorBase)]
    named = [n for n in every if _is_named(str(n.target), reason)]
    # Those of higher order, as cond, cannot be tried alone: their branches are modules.
    calls = [n for n in every if isinstance(n.target, torch._ops.OpOverload)]
    return _tried(module, given, options, named) or _tried(module, given, options, calls)


def _is_named(op: str, reason: str) -> bool:
    """Whether a text names an op, by ATen's name or TVM's: `layer_norm` is `native_layer_norm`."""
    short = op.removeprefix("aten.").partition(".")[0].strip("_")
    words = {word.strip("_") for word in re.findall(r"[a-z]\w{2,}", reason)}
    return any(short == word or f"_{word}_" in f"_{short}_" for word in words)


def _tried(
    module: torch.fx.GraphModule,
    given: Sequence[torch.Tensor | int],
    options: Options,
    nodes: Iterable[torch.fx.Node],
) -> Culprits:
    alone = replace(options, verify=False, freeze=False, on_library=None)
    trial = _Trial(module, given, alone, set(nodes))
    try:
        trial.run(*given)
    except Exception as err:  # PyTorch's ops raise what they like
        raise CannotRun from err
    return trial.culprits


class _Trial(AsTraced):
    """Runs a graph, and builds some of its nodes."""

    def __init__(
        self,
        module: torch.fx.GraphModule,
        given: Sequence[torch.Tensor | int],
        options: Options,
        nodes: set[torch.fx.Node],
    ) -> None:
        super().__init__(module, given)
        self._options, self._nodes = options, nodes
        self._said: dict[object, str] = {}  # of ops that are alike
        self.culprits: Culprits = {}

    def run_node(self, node: torch.fx.Node) -> Any:
        found = super().run_node(node)
        if node in self._nodes and _has_tensors(found):
            alike = _kind(node)
            if alike not in self._said:
                values = {n: self.env[n] for n in node.all_input_nodes}
                self._said[alike] = _complaint(node, values, found, self._options)
            if self._said[alike]:
                self.culprits[node] = self._said[alike]
        return found


def _has_tensors(found: Any) -> bool:
    values = found if isinstance(found, (tuple, list)) else [found]
    return any(isinstance(value, torch.Tensor) for value in values)


def _kind(node: torch.fx.Node) -> object:
    """What decides whether an op can be built: its types, ranks and words, and no size."""

    def of(value: Any) -> Any:
        if isinstance(value, torch.fx.Node):
            traced = value.meta.get("val")
            if isinstance(traced, torch.Tensor):
                return traced.dtype, traced.ndim
            return type(traced)
        if isinstance(value, (tuple, list)):
            return tuple(of(each) for each in value)
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return type(value) if is_number else value

    keywords = tuple((name, of(value)) for name, value in node.kwargs.items())
    return repr((node.target, of(node.args), keywords))


def _complaint(
    node: torch.fx.Node, values: Mapping[torch.fx.Node, Any], found: Any, options: Options
) -> str:
    """Why an op alone cannot be built; empty where it can be."""
    try:
        module, given = _alone(node, values, found)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            Specialised(module, given, (), options)
    except Exception as err:  # whatever ended the build of the graph
        return said(err)
    return ""


def said(err: BaseException) -> str:
    """What an error says, in a line; of one of ours without its class."""
    return str(err) if isinstance(err, SelfbyocError) else one_line(err)


def _alone(
    node: torch.fx.Node, values: Mapping[torch.fx.Node, Any], found: Any
) -> tuple[torch.fx.GraphModule, list[torch.Tensor]]:
    """A graph of one op, and the tensors that it is called with; its sizes are numbers."""
    graph, given = fx.Graph(), []
    inside: dict[torch.fx.Node, Any] = {}
    for outer, value in values.items():
        inside[outer] = value
        if isinstance(value, torch.Tensor):
            inside[outer] = graph.placeholder(outer.name)
            inside[outer].meta["val"] = value
            given.append(value)
    call = graph.node_copy(node, lambda outer: inside[outer])
    call.meta = {**node.meta, "val": found}
    results = [call]
    if isinstance(found, (tuple, list)):
        read = [u for u in node.users if u.target is operator.getitem]
        results = [graph.node_copy(user, lambda _: call) for user in read]
        for result in results:
            result.meta = {"val": found[result.args[1]]}
    graph.output(tuple(results))
    return fx.GraphModule(torch.nn.Module(), graph), given
