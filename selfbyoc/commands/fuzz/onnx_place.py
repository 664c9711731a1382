"""What a function that writes a node of ONNX is given: the model so far, and its place in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import numpy as np

from ...common.optional import extra
from ...ops.vocabulary import KINDS, complete
from .infer import Type
from .program import Node, Program

Array = np.ndarray


class Writer:
    """The nodes and weights of a model under construction."""

    def __init__(self, opset: int) -> None:
        self.onnx, self.opset = extra("onnx"), opset
        self.nodes: list[Any] = []
        self.weights: dict[str, Array] = {}

    def op(self, kind: str, *inputs: str, outputs: int = 1, **attrs: object) -> Any:
        """A new node; -> the name of its result, or their names."""
        names = [f"v{len(self.nodes)}_{n}" for n in range(outputs)]
        given = {name: value for name, value in attrs.items() if value is not None}
        self.nodes.append(self.onnx.helper.make_node(kind, list(inputs), names, **given))
        return names[0] if outputs == 1 else names

    def weight(self, array: Array) -> str:
        """A new constant; -> its name."""
        name = f"w{len(self.weights)}"
        self.weights[name] = array
        return name

    def ints(self, *numbers: int) -> str:
        """A constant of shapes, axes and the like."""
        return self.weight(np.array(numbers, "int64"))

    def reduced(self, kind: str, x: str, axes: Sequence[int] | None, keep: int) -> str:
        """A reduction over these axes, or all."""
        if axes is None:
            return str(self.op(kind, x, keepdims=keep))
        if self.opset < 18 and kind != "ReduceSum":
            return str(self.op(kind, x, axes=list(axes), keepdims=keep))
        return str(self.op(kind, x, self.ints(*axes), keepdims=keep))

    def turned(self, x: str, axes: Sequence[int]) -> str:
        """A transpose, unless nothing moves."""
        same = list(axes) == list(range(len(axes)))
        return x if same else str(self.op("Transpose", x, perm=list(axes)))

    def absorbed(self, x: str, kind: str, bias: str) -> bool:
        """Whether the node that computes x was one of this kind without a bias, and has it now."""
        node = next((n for n in self.nodes if x in n.output), None)
        if node is None or node.op_type != kind or len(node.input) != 2:
            return False
        node.input.append(bias)
        return True


class Place:
    """One node of a program, for the function that writes it."""

    def __init__(self, writer: Writer, program: Program, index: int, found: Sequence[str]) -> None:
        self.w, self.program, self.index = writer, program, index
        self.node: Node = program.nodes[index]
        self.inputs: list[Any] = [found[i] for i in self.node.inputs]
        node = self.node
        self.attrs: Mapping[str, Any] = (
            complete(node.kind, node.attrs) if node.kind in KINDS else node.attrs
        )
        # By what is written, not by where: a smaller program keeps its spellings.
        text = f"{program.seed} {node.kind} {sorted(self.attrs.items(), key=str)}"
        self.rng = Random(text)
        self.types: list[Type] = []
        self.result: Type = ((), "")

    def number(self, value: float) -> str:
        """A constant of the result's dtype."""
        return self.w.weight(np.array(value, self.types[0][1]))

    def only_reader(self) -> bool:
        """Whether nothing else reads or returns the first input."""
        first = self.node.inputs[0]
        return len(self.program.users(first)) == 1 and first not in self.program.outputs

    def is_leaf(self, position: int) -> bool:
        """Whether an input is there from the start."""
        return self.program.nodes[self.node.inputs[position]].is_leaf
