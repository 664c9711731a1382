"""A program as an ONNX model: each op in one of the spellings that exporters use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import numpy as np

from ...common.optional import extra
from ...errors import UnsupportedOp
from ...ops.vocabulary import KINDS, complete
from .infer import Type, infer
from .program import CONSTANT, ITEM, Node, Program

OPSETS = (17, 18)  # up to 17 a reduction's axes are attributes, from 18 on they are an input
Array = np.ndarray


class Writer:
    """The nodes and weights of a model under construction."""

    def __init__(self, opset: int) -> None:
        self.onnx, self.opset = extra("onnx"), opset
        self.nodes: list[Any] = []
        self.weights: dict[str, Array] = {}

    def op(self, kind: str, *inputs: str, outputs: int = 1, **attrs: Any) -> Any:
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

    def __init__(self, writer: Writer, program: Program, index: int, found: Sequence[Any]) -> None:
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


def onnx_model(program: Program, given: Mapping[str, Array]) -> Any:
    """The model; inputs are x0, x1, ... as in the program. Raises UnsupportedOp for an op that
    ONNX does not have.
    """
    from .onnx_spelling import WRITE, plain

    writer = Writer(OPSETS[program.seed // 4 % len(OPSETS)])
    types, found = infer(program), []
    leaves = {i: f"x{n}" for n, i in enumerate(program.leaves())}
    for index, node in enumerate(program.nodes):
        if node.is_leaf:
            found.append(leaves[index])
            continue
        place = Place(writer, program, index, found)
        if node.kind == ITEM:
            parts = place.inputs[0]
            found.append(parts[node.attrs["index"]] if isinstance(parts, list) else parts)
            continue
        place.types = [types[i][0] for i in node.inputs]
        place.result = types[index][0]
        write = WRITE.get(node.kind, plain)
        found.append(write(place))
    return _model(writer, program, types, found, given)


def _model(
    writer: Writer, program: Program, types: Any, found: Sequence[Any], given: Mapping[str, Array]
) -> Any:
    onnx = writer.onnx

    def told(name: str, kind: Type) -> Any:
        code = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(kind[1]))
        return onnx.helper.make_tensor_value_info(name, code, kind[0])

    outputs = []
    for n, index in enumerate(program.outputs):
        name = f"y{n}"
        writer.nodes.append(onnx.helper.make_node("Identity", [found[index]], [name]))
        outputs.append(told(name, types[index][0]))
    leaves = [(program.nodes[i], types[i][0], str(found[i])) for i in program.leaves()]
    inputs = [told(name, kind) for node, kind, name in leaves if node.kind != CONSTANT]
    fixed = {name: given[name] for node, _, name in leaves if node.kind == CONSTANT}
    arrays = [
        onnx.numpy_helper.from_array(np.ascontiguousarray(a).reshape(a.shape), name)
        for name, a in {**fixed, **writer.weights}.items()
    ]
    graph = onnx.helper.make_graph(writer.nodes, "g", inputs, outputs, arrays)
    opset = [onnx.helper.make_opsetid("", writer.opset)]
    return onnx.helper.make_model(graph, opset_imports=opset, ir_version=8)


def by_onnx_runtime(model: Any, inputs: Mapping[str, Array]) -> list[Array]:
    """What ONNX Runtime makes of a model. Raises UnsupportedOp for what it has no kernel of."""
    runtime = extra("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    try:
        session = runtime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        return list(session.run(None, dict(inputs)))
    except Exception as err:  # its own classes of errors, one for each reason
        raise UnsupportedOp(f"ONNX Runtime: {str(err).splitlines()[0]}") from err
