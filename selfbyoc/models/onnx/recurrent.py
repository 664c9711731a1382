"""ONNX's LSTM, GRU and RNN as one product of all inputs and a layer of the vocabulary.

    Y, Y_h, Y_c = LSTM(X, W, R, B, lengths, hidden, cell, P)

    gates     = MatMul(X, W of all directions) + B     [length, batch, directions * 4 * units]
    Y, cells  = selfbyoc.lstm(gates, R, hidden, cell)  [length, directions, batch, units]
    Y_h, Y_c  = the last steps of both: of the reverse direction the first in the sequence

Neither of TVM's frontends has such a layer: Relax's none at all, Relay's unrolls the sequence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import InputError
from ...ops.cells import DIRECTIONS, FUNCTIONS, GATES, NAMES, defaults
from ...ops.kind import OWN
from .build import Nodes
from .graph import Graph, attributes, is_of_onnx
from .lengths import Lengths

LAYERS = {"LSTM": "lstm", "GRU": "gru", "RNN": "rnn"}
_USUAL = {"lstm": ["Sigmoid", "Tanh", "Tanh"], "gru": ["Sigmoid", "Tanh"], "rnn": ["Tanh"]}
_PLAIN = {name.replace("_", ""): name for name in NAMES}  # ONNX's are in no fixed case
_NEWEST = 1 << 30  # steps: the end of a slice


def with_layers(model: Any) -> Any:
    """The model with its recurrent layers written so; itself where there are none.

    Raises InputError for a layer that is none of ONNX's.
    """
    if not any(map(_is_layer, model.graph.node)):
        return model
    changed = type(model)()
    changed.CopyFrom(model)
    graph, done = Graph(changed), []
    for node in changed.graph.node:
        done += _written(node, graph) if _is_layer(node) else [node]
    copies = [type(node).FromString(node.SerializeToString()) for node in done]
    del changed.graph.node[:]
    changed.graph.node.extend(copies)
    return changed


def _is_layer(node: Any) -> bool:
    return node.op_type in LAYERS and is_of_onnx(node)


def _written(node: Any, graph: Graph) -> list[Any]:
    nodes = Nodes(graph, node.name or node.output[0])
    _layer(node, graph).write(nodes)
    return nodes.made


def _layer(node: Any, graph: Graph) -> _Layer:
    given, kind = attributes(node), LAYERS[node.op_type]
    direction = given.get("direction", b"forward").decode().lower()
    if direction not in DIRECTIONS:
        raise InputError(f"{node.op_type} {node.name!r}: direction is {direction!r}")
    shape = graph.shape(node.input[2])
    units = int(given.get("hidden_size") or (shape[-1] if shape else 0))
    if not units:
        raise InputError(f"{node.op_type} {node.name!r}: hidden_size is not known")
    has_peepholes = kind == "lstm" and len(node.input) > 7 and bool(node.input[7])
    attrs: dict[str, Any] = {
        "activations": _activations(node, kind, given, len(DIRECTIONS[direction])),
        "clip": float(given.get("clip", 0.0)),
    }
    if kind == "lstm":
        attrs["input_forget"] = bool(given.get("input_forget", 0))
    if kind == "gru":
        attrs["linear_before_reset"] = bool(given.get("linear_before_reset", 0))
    names = [*node.input, *[""] * (8 - len(node.input))]
    outs = [*node.output, *[""] * (3 - len(node.output))]
    return _Layer(
        "peephole_lstm" if has_peepholes else kind, direction, units, attrs, names, outs,
        is_batch_first=bool(given.get("layout", 0)),
    )  # fmt: skip


def _activations(node: Any, kind: str, given: dict[str, Any], directions: int) -> str:
    """In the vocabulary's words; alphas and betas go to those in turn that have any."""
    names = [n.decode() for n in given.get("activations", [])] or _USUAL[kind] * directions
    left = {0: list(given.get("activation_alpha", [])), 1: list(given.get("activation_beta", []))}
    found = []
    for name in names:
        plain = _PLAIN.get(name.lower())
        if plain is None:
            raise InputError(f"{node.op_type} {node.name!r}: no activation is called {name!r}")
        numbers = [left[n].pop(0) if left[n] else usual for n, usual in enumerate(defaults(plain))]
        found.append(":".join([plain, *map(repr, map(float, numbers))]))
    if len(found) != FUNCTIONS[kind] * directions:
        text = f"expected {FUNCTIONS[kind] * directions} activations, found {names}"
        raise InputError(f"{node.op_type} {node.name!r}: {text}")
    return " ".join(found)


@dataclass(frozen=True)
class _Layer:
    """A node's own words: `names` of its eight inputs, `outs` of its three outputs, "" for none."""

    kind: str
    direction: str
    units: int
    attrs: dict[str, Any]
    names: list[str]
    outs: list[str]
    is_batch_first: bool

    @property
    def directions(self) -> int:
        """One or two."""
        return len(DIRECTIONS[self.direction])

    @property
    def rows(self) -> int:
        """Of a direction's weight."""
        return GATES[self.kind] * self.units

    def write(self, nodes: Nodes) -> None:
        """The nodes, and the results under the names that the model has for them."""
        x, lengths = self.names[0], self.names[4]
        steps = nodes.graph.shape(x)
        x = nodes.transpose(x, (1, 0, 2)) if self.is_batch_first else x
        known = nodes.value(lengths) if lengths else None
        length, batch = (
            (steps[1::-1] if self.is_batch_first else steps[:2]) if steps else (None, None)
        )
        if known is not None and length is not None and (known == length).all():
            lengths = ""
        gates, states = self._gates(nodes, x), self._states(nodes)
        if not lengths:
            found = self._called(nodes, gates, states)
            last = [self._last(nodes, value, length) for value in found]
        else:
            sizes = [
                nodes.size(gates, n) if size is None else nodes.constant(np.asarray(size, np.int64))
                for n, size in enumerate((length, batch))
            ]
            sides = DIRECTIONS[self.direction]
            dtype = self._dtype(nodes)

            def of_one(turned: str, d: int) -> list[str]:
                return self._called(nodes, turned, states, "forward", d)

            found, last = Lengths(nodes, lengths, sizes, sides, dtype, of_one).called(gates, states)
        self._give(nodes, found[0], last)

    def _gates(self, nodes: Nodes, x: str) -> str:
        """The products of all inputs with the weights of all gates."""
        weight = nodes.transpose(self.names[1], (2, 0, 1))
        gates = nodes.add("MatMul", x, nodes.reshape(weight, (0, -1)))
        if not self.names[3]:
            return gates
        both = [nodes.cut(self.names[3], 1, n * self.rows, (n + 1) * self.rows) for n in range(2)]
        if self.kind == "gru":  # the candidate's is added to its own product
            seen = nodes.cut(both[1], 1, 0, 2 * self.units)
            zeros = nodes.constant(np.zeros((self.directions, self.units), self._dtype(nodes)))
            both[1] = nodes.concat([seen, zeros], 1)
        return nodes.add("Add", gates, nodes.reshape(nodes.sum(*both), (-1,)))

    def _states(self, nodes: Nodes) -> list[str]:
        """What the layer reads besides gates and weight: the states at first, and its own."""
        found = [self._first(nodes, self.names[5])]
        if self.kind == "gru":
            bias = np.zeros((self.directions, self.units), self._dtype(nodes))
            given = self.names[3]
            rows = 2 * self.rows
            own = nodes.cut(given, 1, rows - self.units, rows) if given else nodes.constant(bias)
            return [*found, own]
        if self.kind != "rnn":
            found.append(self._first(nodes, self.names[6]))
        return [*found, self.names[7]] if self.kind == "peephole_lstm" else found

    def _first(self, nodes: Nodes, name: str) -> str:
        """[directions, batch, units]; zeros, for whatever batch, where none is given."""
        if name:
            return nodes.transpose(name, (1, 0, 2)) if self.is_batch_first else name
        return nodes.constant(np.zeros((self.directions, 1, self.units), self._dtype(nodes)))

    def _dtype(self, nodes: Nodes) -> Any:
        return nodes.graph.dtype(self.names[2]) or np.dtype("float32")

    def _called(
        self, nodes: Nodes, gates: str, states: list[str], direction: str = "", d: int | None = None
    ) -> list[str]:
        """The layer; or one of its directions alone, in another order."""
        attrs, weight = dict(self.attrs), self.names[2]
        if d is not None:
            weight = nodes.cut(weight, 0, d, d + 1)
            states = [nodes.cut(s, 0, d, d + 1) for s in states]
            gates = nodes.cut(gates, 2, d * self.rows, (d + 1) * self.rows)
            words, count = attrs["activations"].split(), FUNCTIONS[self.kind]
            attrs["activations"] = " ".join(words[d * count :][:count])
        attrs["direction"] = direction or self.direction
        count = 2 if "lstm" in self.kind else 1
        return nodes.several(OWN + self.kind, [gates, weight, *states], count, **attrs)

    def _last(self, nodes: Nodes, states: str, length: int | None) -> str:
        """[directions, batch, units] of [length, directions, batch, units]."""
        if length == 1:
            return nodes.squeeze(states, 0)
        ends = []
        for d, back in enumerate(DIRECTIONS[self.direction]):
            own = nodes.cut(states, 1, d, d + 1) if self.directions > 1 else states
            if length is None:  # of a slice that ends at an open size TVM knows no size
                place = nodes.constant(np.array([0 if back else -1], np.int64))
                ends.append(nodes.add("Gather", own, place, axis=0))
                continue
            ends.append(nodes.cut(own, 0, 0, 1) if back else nodes.cut(own, 0, -1, _NEWEST))
        return nodes.squeeze(nodes.concat(ends, 1), 0)

    def _give(self, nodes: Nodes, states: str, last: list[str]) -> None:
        whole, *ends = self.outs
        order: Callable[[str, tuple[int, ...]], str] = nodes.transpose
        if self.is_batch_first:
            states = order(states, (2, 0, 1, 3)) if whole else states
            last = [order(value, (1, 0, 2)) for value in last]
        if whole:
            nodes.give(states, whole)
        for value, name in zip(last, ends, strict=False):
            if name:
                nodes.give(value, name)
