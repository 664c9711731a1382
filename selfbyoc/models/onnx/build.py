"""New nodes of an ONNX graph; what is constant is computed at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...extra import extra
from ...ops.kind import OWN
from ...ops.vocabulary import attrs_of
from .graph import Graph


class Nodes:
    """Nodes in place of one, in order; values go by their names."""

    def __init__(self, graph: Graph, base: str) -> None:
        self.graph, self.base = graph, base
        self.made: list[Any] = []
        self._known: dict[str, np.ndarray] = {}

    def value(self, name: str) -> np.ndarray | None:
        """What a value is, if it is constant."""
        return self._known[name] if name in self._known else self.graph.constant(name)

    def constant(self, array: np.ndarray) -> str:
        """The name of a new constant."""
        name = self.graph.add(array)
        self._known[name] = array
        return name

    def several(self, op: str, inputs: Sequence[str], count: int, **attrs: Any) -> list[str]:
        """A node of so many results; an op with a dot in its name is none of ONNX's."""
        make, number = extra("onnx").helper.make_node, len(self.made)
        names = [f"{self.base}.{op}.{number}.{n}" for n in range(count)]
        domain = op.partition(".")[0] if "." in op else ""
        told = {k: int(v) if isinstance(v, bool) else v for k, v in attrs.items()}
        name = f"{self.base}.{op}.{number}"
        self.made.append(make(op, list(inputs), names, name=name, domain=domain, **told))
        return names

    def add(self, op: str, *inputs: str, **attrs: Any) -> str:
        """A node of one result."""
        return self.several(op, inputs, 1, **attrs)[0]

    def give(self, value: str, name: str) -> None:
        """A value under another name: of the node's own result."""
        self.made.append(extra("onnx").helper.make_node("Identity", [value], [name]))

    # ---- ops that are computed where their inputs are constants

    def transpose(self, x: str, order: tuple[int, ...]) -> str:
        """Axes in another order."""
        known = self.value(x)
        if known is not None:
            return self.constant(np.ascontiguousarray(known.transpose(order)))
        return self.add("Transpose", x, perm=list(order))

    def reshape(self, x: str, shape: tuple[int, ...]) -> str:
        """With ONNX's 0 (as it is) and -1 (the rest)."""
        known = self.value(x)
        if known is not None:
            sizes = [known.shape[n] if size == 0 else size for n, size in enumerate(shape)]
            return self.constant(known.reshape(sizes))
        return self.add("Reshape", x, self._numbers(shape))

    def cut(self, x: str, axis: int, start: int, end: int) -> str:
        """A part along an axis."""
        known = self.value(x)
        if known is not None:
            place = (*[slice(None)] * axis, slice(start, end))
            return self.constant(np.ascontiguousarray(known[place]))
        if self.graph.opset < 10:
            return self.add("Slice", x, starts=[start], ends=[end], axes=[axis])
        return self.add("Slice", x, *map(self._numbers, ([start], [end], [axis])))

    def concat(self, parts: Sequence[str], axis: int) -> str:
        """Parts along an axis; one of them is itself."""
        known = [self.value(part) for part in parts]
        if len(parts) == 1:
            return parts[0]
        if all(array is not None for array in known):
            return self.constant(np.concatenate(known, axis))  # type: ignore[arg-type]
        return self.add("Concat", *parts, axis=axis)

    def sum(self, x: str, y: str) -> str:
        """Of two values of one shape."""
        a, b = self.value(x), self.value(y)
        return self.constant(a + b) if a is not None and b is not None else self.add("Add", x, y)

    def squeeze(self, x: str, axis: int) -> str:
        """Without an axis of one element."""
        return self._axes("Squeeze", x, axis)

    def unsqueeze(self, x: str, axis: int) -> str:
        """With one more axis."""
        return self._axes("Unsqueeze", x, axis)

    def _axes(self, op: str, x: str, axis: int) -> str:
        known = self.value(x)
        if known is not None:
            change = np.squeeze if op == "Squeeze" else np.expand_dims
            return self.constant(change(known, axis))
        if self.graph.opset < 13:
            return self.add(op, x, axes=[axis])
        return self.add(op, x, self._numbers([axis]))

    def cast(self, x: str, dtype: Any) -> str:
        """In another dtype."""
        known = self.value(x)
        if known is not None:
            return self.constant(known.astype(dtype))
        number = extra("onnx").helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.add("Cast", x, to=number)

    def minus_one(self, x: str) -> str:
        """An int64 less one."""
        return self.add("Sub", x, self.constant(np.ones((), np.int64)))

    def size(self, x: str, axis: int) -> str:
        """How long an axis is, a scalar."""
        shape = self.add("Shape", x)
        return self.add("Gather", shape, self.constant(np.asarray(axis, np.int64)), axis=0)

    def range(self, count: str) -> str:
        """0, 1, ... int64."""
        known = self.value(count)
        if known is not None:
            return self.constant(np.arange(int(known), dtype=np.int64))
        start, step = (self.constant(np.asarray(n, np.int64)) for n in (0, 1))
        return self.add("Range", start, count, step)

    def expand_like(self, x: str, like: str) -> str:
        """Broadcast to the shape of another value of int64."""
        zero = self.add("Mul", like, self.constant(np.zeros((), np.int64)))
        return self.add("Add", x, zero)

    def _numbers(self, values: Sequence[int]) -> str:
        return self.constant(np.asarray(values, np.int64))


def without_own(graph: Any) -> Any:
    """A graph of the nodes that a frontend of TVM has to know."""
    known = type(graph)()
    known.node.extend(node for node in graph.node if not node.op_type.startswith(OWN))
    return known


def own_attrs(op: str, attrs: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of an op of this library's own, as a frontend of TVM's read them."""
    told = {name: value for name, value in attrs.items() if name != "tvm_custom"}
    text = {n: v.decode() if isinstance(v, bytes) else v for n, v in told.items()}
    return attrs_of(op.removeprefix(OWN), text)
