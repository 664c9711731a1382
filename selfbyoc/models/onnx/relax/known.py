"""What small integer tensors of an ONNX model hold, as numbers and expressions of open sizes: a
small abstract interpretation. Shapes that a model computes are such tensors.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ....common.optional import extra
from ....tvm import tir
from ...relax.algebra import Algebra, Extent
from ..computing import NO_CONSTANTS, by_reference
from ..graph import attributes, is_of_onnx
from .elements import FLOATS, Known, as_whole, known_of

if TYPE_CHECKING:
    import onnx

_SMALL = 1024  # elements up to which a tensor is looked into
_NUMBERS = "biuf"  # kinds of dtypes

# Ops that only move the elements of these inputs; what the others hold has to be numbers.
_MOVES: dict[str, Sequence[int] | None] = {
    "Concat": None, "Expand": (0,), "Flatten": (0,), "Gather": (0,), "GatherElements": (0,),
    "GatherND": (0,), "Identity": (0,), "Reshape": (0,), "ScatterElements": (0, 2),
    "ScatterND": (0, 2), "Slice": (0,), "Split": (0,), "Squeeze": (0,), "Tile": (0,),
    "Transpose": (0,), "Unsqueeze": (0,),
}  # fmt: skip
_REDUCTIONS = {"ReduceMax": "most", "ReduceMin": "least", "ReduceProd": "", "ReduceSum": ""}


class Knowledge:
    """What the tensors of a graph hold, by name, as far as that is known."""

    def __init__(self, model: onnx.ModelProto, algebra: Algebra) -> None:
        self.model, self.algebra = model, algebra
        self.of: dict[str, Known] = {}
        for tensor in model.graph.initializer:
            self.note(tensor)

    def note(self, tensor: onnx.TensorProto) -> None:
        """What a constant holds, if it is small."""
        if int(np.prod(tensor.dims)) <= _SMALL:
            self._note(tensor.name, extra("onnx").numpy_helper.to_array(tensor))

    def inputs(self, node: onnx.NodeProto) -> list[Known | None]:
        """What is known of each input of a node."""
        return [self.of.get(name) for name in node.input]

    def learn(
        self, node: onnx.NodeProto, extents: Callable[[str], Sequence[Extent] | None]
    ) -> bool:
        """Note what a node's results hold; whether all of them are known. `extents` of values by
        name.
        """
        found = self._results(node, extents) if is_of_onnx(node) else None
        if found is None or sum(each.elements.size for each in found) > _SMALL:
            return False
        self.of.update((n, each) for n, each in zip(node.output, found, strict=False) if n)
        return True

    def _note(self, name: str, array: np.ndarray) -> None:
        if array.dtype.kind in _NUMBERS:
            self.of[name] = Known(array, str(array.dtype))

    def _results(
        self, node: onnx.NodeProto, extents: Callable[[str], Sequence[Extent] | None]
    ) -> list[Known] | None:
        if node.op_type in ("Shape", "Size"):
            sizes = extents(node.input[0])
            return None if sizes is None else [self._of_shape(node, list(sizes))]
        given = self.inputs(node)
        if not given or any(n and g is None for n, g in zip(node.input, given, strict=True)):
            return None
        if all(g is None or g.is_constant for g in given):
            return self._computed(node, given)
        told = attributes(node)
        if told.get("fmod") or told.get("reduction", b"none") != b"none":
            return None  # other numbers than those of the rules below
        if node.op_type in _MOVES:
            return self._moved(node, given)
        known = [g for g in given if g is not None]
        rules = {
            "Cast": self._cast,
            "Range": self._range,
            **dict.fromkeys(("Ceil", "Floor", "Round"), lambda _, known: known[0]),
            **dict.fromkeys(_REDUCTIONS, self._reduced),
        }
        rule = self._each if node.op_type in self._elementwise else rules.get(node.op_type)
        found = None if rule is None else rule(node, known)
        return None if found is None else [found]

    def _of_shape(self, node: onnx.NodeProto, sizes: list[Extent]) -> Known:
        if node.op_type == "Size":
            return known_of(self.algebra.product(sizes), "int64")
        given = attributes(node)
        return known_of(sizes[given.get("start", 0) : given.get("end", len(sizes))], "int64")

    def _computed(self, node: onnx.NodeProto, given: Sequence[Known | None]) -> list[Known] | None:
        """Of constants, by onnx's own reference."""
        has_graphs = any(a.HasField("g") or a.graphs for a in node.attribute)
        if node.op_type in NO_CONSTANTS or has_graphs:
            return None
        arrays = {n: g.elements for n, g in zip(node.input, given, strict=True) if g is not None}
        found = by_reference(node, arrays, self.model)
        if found is None or any(a.dtype.kind not in _NUMBERS for a in found):
            return None
        return [Known(a, str(a.dtype)) for a in found]

    def _moved(self, node: onnx.NodeProto, given: Sequence[Known | None]) -> list[Known] | None:
        """By onnx's reference too: it moves the places of elements, which are numbers."""
        moved = _MOVES[node.op_type]
        arrays, elements, dtype = dict[str, Any](), list[Any](), "int64"
        for place, (name, known) in enumerate(zip(node.input, given, strict=True)):
            if known is None:
                continue
            if moved is None or place in moved:
                numbers = np.arange(known.elements.size) + len(elements)
                arrays[f"{name}.{place}"] = numbers.reshape(known.elements.shape)
                elements += known.elements.ravel().tolist()
                dtype = given[0].dtype if given[0] is not None else dtype
            elif known.is_constant:
                arrays[f"{name}.{place}"] = known.elements
            else:
                return None
        again = type(node).FromString(node.SerializeToString())
        again.input[:] = [f"{n}.{place}" if n else "" for place, n in enumerate(node.input)]
        found = by_reference(again, arrays, self.model)
        if found is None:
            return None
        objects = np.empty(len(elements), object)
        objects[:] = elements
        results = [known_of(objects[places.astype(np.int64)], dtype) for places in found]
        is_whole = all(each.is_constant or as_whole(each) for each in results)
        return results if is_whole else None

    @functools.cached_property
    def _elementwise(self) -> dict[str, tuple[Callable[..., Extent], str]]:
        """Ops and the dtype of their results; "": that of what they read."""
        a = self.algebra
        return {
            "Add": (operator.add, ""), "Sub": (operator.sub, ""), "Mul": (operator.mul, ""),
            "Div": (a.quotient, ""), "Mod": (a.remainder, ""), "Neg": (operator.neg, ""),
            "Min": (a.least, ""), "Max": (a.most, ""), "Sum": (operator.add, ""),
            "Abs": (lambda x: a.most(x, -x), ""), "Where": (a.chosen, ""),
            "Equal": (operator.eq, "bool"), "Less": (operator.lt, "bool"),
            "LessOrEqual": (operator.le, "bool"), "Greater": (operator.gt, "bool"),
            "GreaterOrEqual": (operator.ge, "bool"),
            "Not": (lambda x: not x if isinstance(x, bool) else tir.Not(x), "bool"),
            "And": (lambda x, y: _joined(tir.And, x, y, False), "bool"),
            "Or": (lambda x, y: _joined(tir.Or, x, y, True), "bool"),
        }  # fmt: skip

    def _each(self, node: onnx.NodeProto, known: Sequence[Known]) -> Known | None:
        """An op of each element, broadcast; sums of several one after the other."""
        function, dtype = self._elementwise[node.op_type]
        if any(g.dtype not in ("bool", "int32", "int64", *FLOATS) for g in known):
            return None
        whole = [as_whole(g) for g in known]
        if any(g is None for g in whole):
            return None
        arrays = [g.elements.astype(object) for g in whole if g is not None]
        if node.op_type == "Div" and known[0].dtype in FLOATS and not self._are_divided(*arrays):
            return None
        if node.op_type in ("Max", "Min", "Sum"):
            while len(arrays) > 1:
                arrays[:2] = [self._applied(function, arrays[:2])]
            return known_of(arrays[0], known[0].dtype)
        return known_of(self._applied(function, arrays), dtype or known[-1].dtype)

    def _are_divided(self, x: np.ndarray, y: np.ndarray) -> bool:
        """Whether floats divided by others are whole at every size."""
        rests = self._applied(self.algebra.remainder, [x, y]) if np.all(y != 0) else np.ones(1)
        return all(isinstance(each, int) and each == 0 for each in rests.ravel().tolist())

    def _applied(self, function: Callable[..., Extent], arrays: Sequence[np.ndarray]) -> np.ndarray:
        arrays = np.broadcast_arrays(*arrays)
        found = np.empty(arrays[0].shape, object)
        for place in np.ndindex(found.shape):
            found[place] = self.algebra.simplest(function(*(a[place] for a in arrays)))
        return found

    def _reduced(self, node: onnx.NodeProto, known: Sequence[Known]) -> Known | None:
        """Of one axis to one number."""
        x, keeps = known[0], attributes(node).get("keepdims", 1)
        if x.elements.ndim != 1 or not x.elements.size or x.dtype[:3] != "int":
            return None
        of_two = {"ReduceProd": operator.mul, "ReduceSum": operator.add}.get(node.op_type)
        of_two = of_two or getattr(self.algebra, _REDUCTIONS[node.op_type])
        found = self.algebra.simplest(functools.reduce(of_two, x.elements.tolist()))
        return known_of([found] if keeps else found, x.dtype)

    def _cast(self, node: onnx.NodeProto, known: Sequence[Known]) -> Known | None:
        (x,) = known
        number = attributes(node)["to"]
        to = str(np.dtype(extra("onnx").helper.tensor_dtype_to_np_dtype(number)))
        if to == "bool" and x.dtype != "bool":
            zero = [np.asarray(0, object)]
            return known_of(self._applied(operator.ne, [x.elements, *zero]), to)
        is_kept = to in ("int32", "int64", *FLOATS) and x.dtype != "bool"
        return known_of(x.elements, to) if is_kept else None

    def _range(self, node: onnx.NodeProto, known: Sequence[Known]) -> Known | None:
        whole, dtype = [as_whole(x) for x in known], known[0].dtype
        if dtype not in ("int32", "int64", *FLOATS) or any(x is None for x in whole):
            return None
        first, end, each = (x.elements.item() for x in whole if x is not None)
        if not isinstance(each, int) or not each:
            return None
        count = self.algebra.simplest(end - first)
        if not isinstance(count, int):
            return None
        numbers = range(max(-(-count // each), 0))
        if len(numbers) > _SMALL:
            return None
        return known_of([self.algebra.simplest(first + n * each) for n in numbers], dtype)


def _joined(
    of_two: Callable[[Extent, Extent], Extent], x: Extent, y: Extent, absorbing: bool
) -> Extent:
    """A conjunction or disjunction of conditions of which one may be known."""
    for one, other in ((x, y), (y, x)):
        if isinstance(one, bool):
            return one if one is absorbing else other
    return of_two(x, y)
