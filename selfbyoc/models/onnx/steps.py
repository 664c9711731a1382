"""What stands for one node of an ONNX graph, written as the nodes that it takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...common.optional import extra
from .graph import Graph

if TYPE_CHECKING:
    import onnx

Value = Any  # the name of a value, or a constant: an array, a NumPy number, integers (of int64)
_AXES_ARE_INPUTS = {"Unsqueeze": 13, "Squeeze": 13, "ReduceSum": 13}  # since these opsets
_REDUCTIONS_TAKE_INPUTS = 18


class Steps:
    """Calls write nodes, and return the names of their results.

    steps = Steps(graph, node)
    half = steps("Mul", x, np.float32(0.5))
    return steps.instead(steps("Add", half, y))
    """

    def __init__(self, graph: Graph, node: onnx.NodeProto) -> None:
        self.graph, self.node, self.nodes = graph, node, list[Any]()

    def __call__(self, op: str, *inputs: Value, **attributes: object) -> str:
        return self.results(1, op, *inputs, **attributes)[0]

    def results(self, count: int, op: str, *inputs: Value, **attributes: object) -> list[str]:
        """The results of an op that has several."""
        given = [x if isinstance(x, str) else self.constant(x) for x in inputs]
        prefix = self.node.name or next(filter(None, self.node.output))
        outputs = [self.graph.free_name(f"{prefix}.{op}") for _ in range(count)]
        self.nodes.append(extra("onnx").helper.make_node(op, given, outputs, **attributes))
        return outputs

    def constant(self, value: object, dtype: np.typing.DTypeLike | None = None) -> str:
        """The name of a constant; Python's integers are int64."""
        plain = isinstance(value, (int, list, tuple)) and dtype is None
        return self.graph.add(np.asarray(value, np.int64 if plain else dtype))

    def over(self, op: str, x: Value, axes: Sequence[int], **attributes: object) -> str:
        """An op that takes axes, as an attribute or as an input: this opset's."""
        first = _AXES_ARE_INPUTS.get(op, _REDUCTIONS_TAKE_INPUTS)
        if self.graph.opset >= first:
            return self(op, x, list(axes), **attributes)
        return self(op, x, axes=list(axes), **attributes)

    def cast(self, x: Value, dtype: np.typing.DTypeLike | None) -> str:
        """A value in another dtype, one of NumPy's."""
        to = extra("onnx").helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self("Cast", x, to=to)

    def instead(self, *results: str) -> list[onnx.NodeProto]:
        """The nodes, whose results are those of the node that they stand for."""
        given: dict[str, str] = {}
        for found, name in zip(results, self.node.output, strict=False):
            if name and not (found not in given and self._renamed(found, name)):
                same = extra("onnx").helper.make_node("Identity", [given.get(found, found)], [name])
                self.nodes.append(same)
            given.setdefault(found, name)
        return self.nodes

    def _renamed(self, found: str, name: str) -> bool:
        """Whether these nodes make the value; it has the other name then."""
        if not any(found in node.output for node in self.nodes):
            return False
        for node in self.nodes:
            for names in (node.input, node.output):
                names[:] = [name if n == found else n for n in names]
        return True
