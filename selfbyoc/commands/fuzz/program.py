"""A case of the fuzzer: one small program, as text, that either generation can write as a model.

Node 3 of a program may read nodes 0, 1 and 2. Leaves are inputs and constants; all others are ops
of the vocabulary, by their neutral names, or one output (`item`) of an op that has several.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ...common import structured
from ...errors import InputError

INPUT, CONSTANT, ITEM = "input", "constant", "item"
LEAVES = (INPUT, CONSTANT)
LARGEST = 1 << 24  # elements of a leaf in a case that is read


@dataclass(frozen=True)
class Node:
    """A leaf with its type (`value`: full of this one number), or an op on nodes before it."""

    kind: str
    inputs: tuple[int, ...] = ()
    attrs: Mapping[str, Any] = field(default_factory=dict)
    shape: tuple[int, ...] = ()
    dtype: str = ""
    value: float | None = None

    @property
    def is_leaf(self) -> bool:
        """Whether nothing computes it."""
        return self.kind in LEAVES

    def data(self) -> dict[str, object]:
        """The fields that say something, as JSON data."""
        if not self.is_leaf:
            attrs = {"attrs": dict(self.attrs)} if self.attrs else {}
            return {"kind": self.kind, "inputs": list(self.inputs), **attrs}
        value = {} if self.value is None else {"value": self.value}
        return {"kind": self.kind, "shape": list(self.shape), "dtype": self.dtype, **value}


@dataclass(frozen=True)
class Plant:
    """An attribute of TVM's, which our vocabulary may not know, at the `index`-th op of a name."""

    op: str
    index: int
    name: str
    value: Any


@dataclass(frozen=True)
class Program:
    """Nodes in order, which of them are returned, the seed of its numbers, how it grew, and what is
    changed in the model of it.
    """

    nodes: tuple[Node, ...]
    outputs: tuple[int, ...]
    seed: int = 0
    grown: tuple[str, ...] = ()
    plant: Plant | None = None
    onnx: bool = False  # written as an ONNX model, which TVM's frontend reads
    target: str = ""  # built for this one; "": what the run is for

    def to_json(self) -> str:
        """A line for each node."""
        nodes = ",\n  ".join(json.dumps(n.data()) for n in self.nodes)
        told = json.dumps(list(self.grown))
        more = f' "plant": {json.dumps(asdict(self.plant))},\n' if self.plant else ""
        more += ' "onnx": true,\n' if self.onnx else ""
        more += f' "target": {json.dumps(self.target)},\n' if self.target else ""
        return (
            f'{{"seed": {self.seed}, "grown": {told},\n{more} "nodes": [\n  {nodes}],\n'
            f' "outputs": {json.dumps(list(self.outputs))}}}\n'
        )

    def leaves(self) -> list[int]:
        """The nodes that are inputs or constants."""
        return [i for i, n in enumerate(self.nodes) if n.is_leaf]

    def users(self, index: int) -> list[int]:
        """The nodes that read a node."""
        return [i for i, n in enumerate(self.nodes) if index in n.inputs]

    def kinds(self) -> list[str]:
        """The kinds of its ops, in order."""
        return [n.kind for n in self.nodes if not n.is_leaf and n.kind != ITEM]


def from_json(text: str) -> Program:
    """The program that `to_json` wrote, or an InputError."""
    try:
        found = structured.read(Program, text)
    except ValueError as err:
        raise InputError(f"this is no case of the fuzzer: {err}") from err
    nodes, outputs = tuple(map(_with_tuples, found.nodes)), found.outputs
    for index, node in enumerate(nodes):
        if not all(0 <= i < index for i in node.inputs):
            raise InputError(f"node {index} of the case reads {node.inputs}, expected nodes before")
        if min((*node.shape, 0)) < 0 or math.prod(node.shape) > LARGEST:
            wanted = f"expected extents from 0 on, at most {LARGEST} elements"
            raise InputError(f"node {index} of the case has the shape {node.shape}; {wanted}")
    if not outputs or not all(0 <= i < len(nodes) for i in outputs):
        raise InputError(f"the case returns {outputs}, expected some of {len(nodes)} nodes")
    return replace(found, nodes=nodes)


def _with_tuples(node: Node) -> Node:
    return replace(node, attrs={name: _tuples(value) for name, value in node.attrs.items()})


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


class Draft:
    """A program under change: nodes may be added in any order, `done` sorts and drops."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.nodes = list(program.nodes)
        self.outputs = list(program.outputs)

    def op(self, kind: str, *inputs: int, **attrs: object) -> int:
        """A new op on nodes."""
        self.nodes.append(Node(kind, inputs, attrs))
        return len(self.nodes) - 1

    def leaf(
        self, shape: Sequence[int], dtype: str, kind: str = INPUT, value: float | None = None
    ) -> int:
        """A new input or constant."""
        self.nodes.append(Node(kind, shape=tuple(shape), dtype=dtype, value=value))
        return len(self.nodes) - 1

    def scalar(self, value: float, dtype: str, ndim: int = 0) -> int:
        """A constant of one element."""
        return self.leaf((1,) * ndim, dtype, CONSTANT, value)

    def change(self, index: int, **fields: Any) -> None:
        """Other fields for a node."""
        self.nodes[index] = replace(self.nodes[index], **fields)

    def redirect(self, old: int, new: int, keep: Iterable[int] = ()) -> None:
        """Whoever reads or returns `old` reads `new`, except the nodes `keep`."""
        kept = {new, *keep}
        for index, node in enumerate(self.nodes):
            if index not in kept and old in node.inputs:
                inputs = tuple(new if i == old else i for i in node.inputs)
                self.nodes[index] = replace(node, inputs=inputs)
        self.outputs = [new if i == old else i for i in self.outputs]

    def append(self, other: Program) -> dict[int, int]:
        """All nodes of another program; -> where they are now."""
        base = len(self.nodes)
        for node in other.nodes:
            self.nodes.append(replace(node, inputs=tuple(i + base for i in node.inputs)))
        return {i: i + base for i in range(len(other.nodes))}

    def done(self, told: str) -> Program:
        """The program in order, without what nobody reads; inputs come first, as they were."""
        order: list[int] = []
        seen: set[int] = set()
        for root in self.outputs:
            _visit(self.nodes, root, seen, order)
        order.sort(key=lambda i: not self.nodes[i].is_leaf)  # stable: leaves to the front
        place = {old: new for new, old in enumerate(order)}
        nodes = tuple(
            replace(self.nodes[i], inputs=tuple(place[j] for j in self.nodes[i].inputs))
            for i in order
        )
        outputs = tuple(place[i] for i in self.outputs)
        grown = (*self.program.grown, told) if told else self.program.grown
        return replace(self.program, nodes=nodes, outputs=outputs, grown=grown)


def _visit(nodes: Sequence[Node], root: int, seen: set[int], order: list[int]) -> None:
    """After all that it reads. Raises RecursionError where a change made a circle."""
    stack = [(root, False)]
    open_: set[int] = set()
    while stack:
        index, is_ready = stack.pop()
        if is_ready:
            open_.discard(index)
            order.append(index)
            continue
        if index in open_:
            raise RecursionError("a node reads itself")
        if index in seen:
            continue
        seen.add(index)
        open_.add(index)
        stack.append((index, True))
        for inner in reversed(nodes[index].inputs):
            if inner in open_:
                raise RecursionError("a node reads itself")
            if inner not in seen:
                stack.append((inner, False))
