"""Steps of which those on constants are computed at once, and ops of this library's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ops.kind import OWN
from ...ops.vocabulary import attrs_of
from ...tvm.types import Attrs
from .claims import check_room
from .steps import Steps

if TYPE_CHECKING:
    import onnx

_SLICES_TAKE_INPUTS = 10  # since this opset


class Folding(Steps):
    """Steps for weights, which must be known to be packed; values go by their names."""

    def own(self, kind: str, count: int, *inputs: str, **attrs: object) -> list[str]:
        """The results of an op of the vocabulary that none of ONNX's is."""
        return self.results(count, OWN + kind, *inputs, domain=OWN[:-1], **attrs)

    def transpose(self, x: str, order: tuple[int, ...]) -> str:
        """Axes in another order."""
        known = self.graph.constant(x)
        if known is not None:
            return self.constant(np.ascontiguousarray(known.transpose(order)))
        return self("Transpose", x, perm=list(order))

    def reshape(self, x: str, shape: tuple[int, ...]) -> str:
        """With ONNX's 0 (as it is) and -1 (the rest)."""
        known = self.graph.constant(x)
        if known is not None:
            sizes = [known.shape[n] if size == 0 else size for n, size in enumerate(shape)]
            return self.constant(known.reshape(sizes))
        return self("Reshape", x, shape)

    def cut(self, x: str, axis: int, start: int, end: int) -> str:
        """A part along an axis."""
        known = self.graph.constant(x)
        if known is not None:
            place = (*[slice(None)] * axis, slice(start, end))
            return self.constant(np.ascontiguousarray(known[place]))
        if self.graph.opset < _SLICES_TAKE_INPUTS:
            return self("Slice", x, starts=[start], ends=[end], axes=[axis])
        return self("Slice", x, [start], [end], [axis])

    def concat(self, parts: Sequence[str], axis: int) -> str:
        """Parts along an axis; one of them is itself."""
        known = [self.graph.constant(part) for part in parts]
        if len(parts) == 1:
            return parts[0]
        if all(array is not None for array in known):
            return self.constant(np.concatenate(known, axis))  # type: ignore[arg-type]
        return self("Concat", *parts, axis=axis)

    def sum(self, x: str, y: str) -> str:
        """Of two values of one shape."""
        a, b = self.graph.constant(x), self.graph.constant(y)
        return self.constant(a + b) if a is not None and b is not None else self("Add", x, y)

    def squeeze(self, x: str, axis: int) -> str:
        """Without an axis of one element."""
        known = self.graph.constant(x)
        if known is not None:
            return self.constant(known.squeeze(axis))
        return self.over("Squeeze", x, [axis])

    def unsqueeze(self, x: str, axis: int) -> str:
        """With one more axis."""
        return self.over("Unsqueeze", x, [axis])

    def range(self, count: str) -> str:
        """0, 1, ... int64."""
        known = self.graph.constant(count)
        if known is not None:
            check_room(self.node, int(known))
            return self.constant(np.arange(int(known), dtype=np.int64))
        return self("Range", np.int64(0), count, np.int64(1))


def without_own(graph: onnx.GraphProto) -> onnx.GraphProto:
    """A graph of the nodes that a frontend of TVM has to know."""
    known = type(graph)()
    known.node.extend(node for node in graph.node if not node.op_type.startswith(OWN))
    return known


def own_attrs(op: str, attrs: Attrs) -> dict[str, Any]:
    """The attributes of an op of this library's own, as a frontend of TVM's read them."""
    told = {name: value for name, value in attrs.items() if name != "tvm_custom"}
    text = {n: v.decode() if isinstance(v, bytes) else v for n, v in told.items()}
    return attrs_of(op.removeprefix(OWN), text)
