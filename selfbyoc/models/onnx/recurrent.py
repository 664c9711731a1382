"""ONNX's LSTM, GRU and RNN as one product of all inputs and a layer of the vocabulary.

    Y, Y_h, Y_c = LSTM(X, W, R, B, lengths, hidden, cell, P)

    gates     = MatMul(X, W of all directions) + B     [length, batch, directions * 4 * units]
    Y, cells  = selfbyoc.lstm(gates, R, hidden, cell)  [length, directions, batch, units]
    Y_h, Y_c  = the last steps of both: of the reverse direction the first in the sequence

Neither of TVM's frontends has such a layer: Relax's none at all, Relay's unrolls the sequence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError
from ...ops.cells import DIRECTIONS, FUNCTIONS, GATES, NAMES, defaults
from .build import Folding
from .claims import check_room
from .graph import Graph, NodeAttrs, attributes, where
from .lengths import Lengths

if TYPE_CHECKING:
    import onnx

_KINDS = {"LSTM": "lstm", "GRU": "gru", "RNN": "rnn"}
_USUAL = {"lstm": ["Sigmoid", "Tanh", "Tanh"], "gru": ["Sigmoid", "Tanh"], "rnn": ["Tanh"]}
_PLAIN = {name.replace("_", ""): name for name in NAMES}  # ONNX's are in no fixed case
_NEWEST = 1 << 30  # steps: the end of a slice


def _form(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto]:
    """Raises InputError for a layer that is none of ONNX's."""
    return layer_of(node, graph).write(Folding(graph, node))


def layer_of(node: onnx.NodeProto, graph: Graph) -> Layer:
    """A node's words. Raises InputError for a layer that is none of ONNX's."""
    is_turned = node.op_type not in _KINDS  # weights of 8 bits are [directions, inputs, gates]
    given, kind = attributes(node), _KINDS.get(node.op_type, "lstm")
    direction = given.get("direction", b"forward").decode().lower()
    if direction not in DIRECTIONS:
        raise InputError(f"{node.op_type} {node.name!r}: direction is {direction!r}")
    shape = graph.shape(node.input[2])
    units = int(given.get("hidden_size") or (shape[1 if is_turned else -1] if shape else 0))
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
    names = [*node.input, *[""] * (8 - len(node.input))][:8]
    sides, rows = len(DIRECTIONS[direction]), GATES[kind] * units
    _check_sizes(node, graph, names, is_turned, (sides, rows, units))
    return Layer(
        "peephole_lstm" if has_peepholes else kind, direction, units, attrs, names,
        is_batch_first=bool(given.get("layout", 0)),
    )  # fmt: skip


def _check_sizes(
    node: onnx.NodeProto,
    graph: Graph,
    names: Sequence[str],
    is_turned: bool,
    sizes: tuple[int, int, int],
) -> None:
    """Raises InputError where hidden_size and the shapes of weights and states contradict each
    other: sizes that a file claims are those of what it holds.
    """
    sides, rows, units = sizes
    weight = (sides, None, rows) if is_turned else (sides, rows, None)
    states = (sides, units, rows) if is_turned else (sides, rows, units)
    wanted: dict[int, tuple[int | None, ...]] = {
        1: weight, 2: states, 3: (sides, 2 * rows), 7: (sides, 3 * units),
        5: (None, None, units), 6: (None, None, units),
    }  # fmt: skip
    for place, expected in wanted.items():
        found = graph.dims(names[place]) if names[place] else None
        pairs = zip(found or (), expected, strict=False)
        if found is None or (
            len(found) == len(expected)
            and all(None in pair or pair[0] == pair[1] for pair in pairs)
        ):
            continue
        told = [e if e is not None else "any" for e in expected]
        text = f"hidden_size is {units}, so that {names[place]!r} is {told}, found {found}"
        raise InputError(f"{where(node.op_type, node.name)}: {text}")
    check_room(node, sides, rows)  # of weights that nobody knows


def _activations(node: onnx.NodeProto, kind: str, given: NodeAttrs, directions: int) -> str:
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
class Layer:
    """A node's own words: `names` of its eight inputs, "" for none."""

    kind: str
    direction: str
    units: int
    attrs: dict[str, Any]
    names: list[str]
    is_batch_first: bool
    of_inputs: str = ""  # the weights [inputs, directions * rows], where they are known as that

    @property
    def directions(self) -> int:
        """One or two."""
        return len(DIRECTIONS[self.direction])

    @property
    def rows(self) -> int:
        """Of a direction's weight."""
        return GATES[self.kind] * self.units

    def write(self, nodes: Folding) -> list[onnx.NodeProto]:
        """The nodes, with the results under the names that the model has for them."""
        x, lengths = self.names[0], self.names[4]
        sizes = (nodes.graph.dims(x) or [None, None])[:2]
        if self.is_batch_first:
            x, sizes = nodes.transpose(x, (1, 0, 2)), sizes[::-1]
        gates, states = self._gates(nodes, x), self._states(nodes)
        if not lengths or _are_all(nodes.graph.constant(lengths), sizes[0]):
            found = self._called(nodes, gates, states)
            last = [self._last(nodes, value, sizes[0]) for value in found]
        else:
            found, last = self._of_lengths(nodes, gates, states, sizes)
        whole = found[0]
        if self.is_batch_first:
            whole = nodes.transpose(whole, (2, 0, 1, 3)) if nodes.node.output[0] else whole
            last = [nodes.transpose(value, (1, 0, 2)) for value in last]
        return nodes.instead(whole, *last)

    def _of_lengths(
        self, nodes: Folding, gates: str, states: list[str], sizes: Sequence[int | None]
    ) -> tuple[list[str], list[str]]:
        """The results over all steps and the last ones, of sequences of several lengths."""
        counts = [
            nodes("Gather", nodes("Shape", gates), np.int64(n)) if size is None
            else nodes.constant(np.int64(size))
            for n, size in enumerate(sizes)
        ]  # fmt: skip

        def of_one(turned: str, d: int) -> list[str]:
            return self._called(nodes, turned, states, "forward", d)

        sides, dtype = DIRECTIONS[self.direction], self._dtype(nodes)
        made = Lengths(nodes, self.names[4], counts, sides, dtype, of_one)
        return made.called(gates, states)

    def _gates(self, nodes: Folding, x: str) -> str:
        """The products of all inputs with the weights of all gates."""
        weight = self.of_inputs
        if not weight:
            weight = nodes.reshape(nodes.transpose(self.names[1], (2, 0, 1)), (0, -1))
        gates = nodes("MatMul", x, weight)
        if not self.names[3]:
            return gates
        both = [nodes.cut(self.names[3], 1, n * self.rows, (n + 1) * self.rows) for n in range(2)]
        if self.kind == "gru":  # the candidate's is added to its own product
            seen = nodes.cut(both[1], 1, 0, 2 * self.units)
            zeros = nodes.constant(np.zeros((self.directions, self.units), self._dtype(nodes)))
            both[1] = nodes.concat([seen, zeros], 1)
        return nodes("Add", gates, nodes.reshape(nodes.sum(*both), (-1,)))

    def _states(self, nodes: Folding) -> list[str]:
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

    def _first(self, nodes: Folding, name: str) -> str:
        """[directions, batch, units]; zeros, for whatever batch, where none is given."""
        if name:
            return nodes.transpose(name, (1, 0, 2)) if self.is_batch_first else name
        return nodes.constant(np.zeros((self.directions, 1, self.units), self._dtype(nodes)))

    def _dtype(self, nodes: Folding) -> np.dtype:
        return nodes.graph.dtype(self.names[2]) or np.dtype("float32")

    def _called(
        self,
        nodes: Folding,
        gates: str,
        states: list[str],
        direction: str = "",
        d: int | None = None,
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
        return nodes.own(self.kind, count, gates, weight, *states, **attrs)

    def _last(self, nodes: Folding, states: str, length: int | None) -> str:
        """[directions, batch, units] of [length, directions, batch, units]."""
        if length == 1:
            return nodes.squeeze(states, 0)
        ends = []
        for d, back in enumerate(DIRECTIONS[self.direction]):
            own = nodes.cut(states, 1, d, d + 1) if self.directions > 1 else states
            if length is None:  # of a slice that ends at an open size TVM knows no size
                ends.append(nodes("Gather", own, [0 if back else -1], axis=0))
                continue
            ends.append(nodes.cut(own, 0, 0, 1) if back else nodes.cut(own, 0, -1, _NEWEST))
        return nodes.squeeze(nodes.concat(ends, 1), 0)


def _are_all(lengths: np.ndarray | None, length: int | None) -> bool:
    return lengths is not None and length is not None and bool((lengths == length).all())


FORMS = dict.fromkeys(_KINDS, _form)
