"""An ONNX graph as its nodes are read: constants, shapes, attributes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from ...common.optional import extra
from ...errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import onnx

NodeAttrs: TypeAlias = dict[str, Any]  # by name: numbers, bytes, tensors, graphs, lists of these
Message: TypeAlias = Any  # of protobuf, which ships no types


class Graph:
    """A model's constants and shapes by name, and which values are read."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.graph, self.arrays = model.graph, extra("onnx").numpy_helper.to_array
        self.opset = opset_of(model)
        self.shared: dict[Any, Any] = {}  # what forms of several nodes write once, by what it is

    @cached_property
    def _names(self) -> set[str]:
        """Of all values."""
        own = {name for node in nodes(self.graph) for name in (*node.input, *node.output)}
        return own | set(self._types) | {t.name for t in self.graph.initializer}

    @cached_property
    def _constants(self) -> dict[str, onnx.TensorProto]:
        found = {t.name: t for t in self.graph.initializer}
        for node in self.graph.node:
            if node.op_type in ("Cast", "CastLike", "Identity") and node.input[0] in found:
                found[node.output[0]] = found[node.input[0]]
            elif node.op_type == "Constant" and node.attribute and node.attribute[0].HasField("t"):
                found[node.output[0]] = node.attribute[0].t
        return found

    @cached_property
    def _types(self) -> dict[str, onnx.TypeProto.Tensor]:
        sides = (self.graph.input, self.graph.value_info, self.graph.output)
        return {v.name: v.type.tensor_type for side in sides for v in side}

    def is_cast_to_floats(self, name: str) -> bool:
        """Whether all that is made of a value, perhaps with a bias, is a cast to float32."""
        readers = [node for node in nodes(self.graph) if name in node.input]
        if not readers or name in {value.name for value in self.graph.output}:
            return False
        casts = (node.op_type == "Cast" and attributes(node)["to"] == 1 for node in readers)
        if all(casts):
            return True
        only = readers[0]
        between = only.op_type in ("Add", "Reshape", "Squeeze") and only.input[0] == name
        return between and len(readers) == 1 and self.is_cast_to_floats(only.output[0])

    @cached_property
    def read(self) -> set[str]:
        """What some op reads, or the model returns."""
        inner = {name for node in nodes(self.graph) for name in node.input}
        return inner | {value.name for value in self.graph.output}

    @cached_property
    def makers(self) -> dict[str, onnx.NodeProto]:
        """The nodes by what they compute."""
        return {name: node for node in self.graph.node for name in node.output if name}

    def constant(self, name: str) -> np.ndarray | None:
        """The value of a constant, before it is cast like another value, or of what has no
        elements; None for others.
        """
        import numpy as np  # here: the command line needs this module before it needs NumPy

        if name in self._constants:
            return np.asarray(self.arrays(self._constants[name]))
        shape, dtype = self.shape(name), self.dtype(name)
        return np.zeros(shape, dtype) if shape and 0 in shape and dtype is not None else None

    def shape(self, name: str) -> tuple[int, ...] | None:
        """The shape of a value, if all of it is known."""
        if name in self._constants:
            return tuple(self._constants[name].dims)
        if name not in self._types:
            return None
        kind = self._types[name]
        if not kind.HasField("shape"):
            return None
        dims = kind.shape.dim
        return tuple(d.dim_value for d in dims) if all(_is_known(d) for d in dims) else None

    def dims(self, name: str) -> list[int | None] | None:
        """The sizes of a value's axes, None for those that are not known; None where not even the
        number of axes is.
        """
        if name in self._constants:
            return list(self._constants[name].dims)
        kind = self._types.get(name)
        if kind is None or not kind.HasField("shape"):
            return None
        return [d.dim_value if _is_known(d) else None for d in kind.shape.dim]

    def extent(self, name: str, axis: int) -> int | str | None:
        """The size of a value's axis, or its name; None where it has neither."""
        kind = self._types.get(name)
        dims = kind.shape.dim if kind is not None and kind.HasField("shape") else []
        if axis >= len(dims):
            return None
        return dims[axis].dim_value if _is_known(dims[axis]) else dims[axis].dim_param or None

    def sizes(self, name: str) -> tuple[int | str, ...] | None:
        """The sizes of a value's axes, by name those that are open and have one ("": none); None
        where not even the number of axes is known.
        """
        rank = self.rank(name)
        if rank is None:
            return None
        return tuple(e if (e := self.extent(name, n)) is not None else "" for n in range(rank))

    def rank(self, name: str) -> int | None:
        """How many axes a value has, if that is known."""
        dims = self.dims(name)
        return None if dims is None else len(dims)

    def image(self, name: str) -> tuple[int, ...] | None:
        """The height, width, ... of images of whatever number, if they are known."""
        kind = self._types.get(name)
        dims = kind.shape.dim[2:] if kind is not None and kind.HasField("shape") else []
        return tuple(d.dim_value for d in dims) if dims and all(map(_is_known, dims)) else None

    def dtype_number(self, name: str) -> int:
        """A value's dtype as ONNX numbers them; 0 where it is not known."""
        if name in self._types and self._types[name].elem_type:
            return int(self._types[name].elem_type)
        return int(self._constants[name].data_type) if name in self._constants else 0

    def dtype(self, name: str) -> np.dtype | None:
        """The dtype of a value, if it is known and one of NumPy's."""
        import numpy as np

        try:
            number = self.dtype_number(name)
            return np.dtype(extra("onnx").helper.tensor_dtype_to_np_dtype(number))
        except KeyError:
            return None

    def free_name(self, text: str) -> str:
        """A name like this that no value has; it is taken then."""
        number, name = len(self._names), text
        while name in self._names:
            number, name = number + 1, f"{text}.{number}"
        self._names.add(name)
        return name

    def add(self, array: np.ndarray) -> str:
        """The name of a new constant."""
        name = self.free_name("selfbyoc.constant")
        self.graph.initializer.append(extra("onnx").numpy_helper.from_array(array, name))
        self._constants[name] = self.graph.initializer[-1]
        return name


def opset_of(model: onnx.ModelProto) -> int:
    """The version of ONNX's own ops that a model is written in."""
    own = [e.version for e in model.opset_import if e.domain in ("", "ai.onnx")]
    return max(own, default=1)


def _is_known(dim: onnx.TensorShapeProto.Dimension) -> bool:
    return bool(dim.HasField("dim_value"))


def nodes(graph: onnx.GraphProto, closed: Collection[str] = ()) -> Iterator[onnx.NodeProto]:
    """Those of the branches and loops inside, too, but not what is within `closed` ops."""
    for node in graph.node:
        yield node
        for attribute in node.attribute if node.op_type not in closed else ():
            for inner in (attribute.g, *attribute.graphs):
                yield from nodes(inner, closed)


def op_name(node: onnx.NodeProto) -> str:
    """What op a node is of, with its domain where that is not ONNX's own."""
    return str(node.op_type) if is_of_onnx(node) else f"{node.domain}.{node.op_type}"


def where(op: str, name: str) -> str:
    """A node, as errors name it."""
    return f"{op} {name!r}" if name else op


def is_of_onnx(node: onnx.NodeProto) -> bool:
    """Whether a node is of ONNX's own ops, not of another domain that has one of its name."""
    return node.domain in ("", "ai.onnx")


def attributes(node: onnx.NodeProto) -> NodeAttrs:
    """A node's attributes by name."""
    return {a.name: extra("onnx").helper.get_attribute_value(a) for a in node.attribute}


def refuse_attributes(node: onnx.NodeProto, done: Mapping[str, Sequence[object]]) -> None:
    """Raises InputError for an attribute of another value than those that are done."""
    given = attributes(node)
    for name, values in done.items():
        if name in given and given[name] not in values:
            text = f"expected {name}={values[0]!r}, found {given[name]!r}"
            raise InputError(f"{where(node.op_type, node.name)}: {text}")


def refuse_results(node: onnx.NodeProto, graph: Graph, *places: int) -> None:
    """Raises InputError where one of these results is read."""
    for name in (node.output[n] for n in places if n < len(node.output)):
        if name and name in graph.read:
            text = f"its result {name!r} is used, which is not computed"
            raise InputError(f"{where(node.op_type, node.name)}: {text}")


def remade(
    node: onnx.NodeProto,
    op: str | None = None,
    inputs: Sequence[str] | None = None,
    attributes: Mapping[str, onnx.TensorProto] | None = None,
) -> onnx.NodeProto:
    """A node like this one, but for what is given."""
    helper = extra("onnx").helper
    made = type(node)()
    made.CopyFrom(node)
    made.op_type = op or node.op_type
    if inputs is not None:
        made.input[:] = inputs
    if attributes is not None:
        del made.attribute[:]
        made.attribute.extend(helper.make_attribute(k, v) for k, v in attributes.items())
    return made
