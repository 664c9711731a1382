"""What a mutant has that the user's model has not: each kind of change, drawn by a seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from ....common.optional import extra
from ....models.onnx.graph import Graph, attributes
from .attributes import mutate_attribute, mutate_group, schema, set_attributes
from .protos import replace_all, tidy, typed
from .sizes import mutate_batch, mutate_extent, mutate_image

if TYPE_CHECKING:
    import onnx

Mutate = Callable[[Graph, Random], "str | None"]
_WEIGHT = 1 << 16  # elements of a constant that may be an input instead

# Ops of one signature. Limits of a Clip are inputs of its own, which it may go without.
_ALIKE: tuple[tuple[str, ...], ...] = (
    ("Relu", "Sigmoid", "HardSwish", "LeakyRelu", "Clip", "Tanh", "Elu", "Softplus", "HardSigmoid",
     "Selu", "Softsign", "Abs", "Neg", "Erf", "Identity", "Mish", "Gelu", "Sin", "Exp"),
    ("Add", "Mul", "Sub", "Max", "Min"),
    ("MaxPool", "AveragePool"),
    ("GlobalAveragePool", "GlobalMaxPool"),
    ("ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceSumSquare",
     "ReduceLogSumExp", "ReduceProd"),
    ("ArgMax", "ArgMin"), ("Softmax", "LogSoftmax"),
    ("Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual"), ("And", "Or", "Xor"),
    ("Floor", "Ceil", "Round"),
)  # fmt: skip
_SIGNATURES = {op: group for group in _ALIKE for op in group}


def _op(graph: Graph, rng: Random) -> str | None:
    found = [n for n in graph.graph.node if n.op_type in _SIGNATURES and len(n.output) == 1]
    if not found:
        return None
    node = rng.choice(found)
    has_op = extra("onnx").defs.has
    others = [
        op for op in _SIGNATURES[node.op_type] if op != node.op_type and has_op(op, graph.opset)
    ]
    old, node.op_type = node.op_type, rng.choice(others)
    if old == "Clip":
        del node.input[1:]
    known = schema(node.op_type, graph.opset)
    set_attributes(node, {k: v for k, v in attributes(node).items() if k in known})
    return f"{old} is {node.op_type}"


def _drop(graph: Graph, rng: Random) -> str | None:
    """One node less, where what it gives is of the type that it reads."""
    returned = {value.name for value in graph.graph.output}
    found = [
        (n, name)
        for n in graph.graph.node
        if len(n.output) == 1 and n.output[0] not in returned
        for name in n.input
        if name and _type(graph, name) == _type(graph, n.output[0])
    ]
    if not found:
        return None
    node, name = rng.choice(found)
    redirect(graph.graph, node.output[0], name)
    return f"without {node.op_type}"


def redirect(graph: onnx.GraphProto, old: str, new: str) -> None:
    """Who reads a value reads another one."""
    for node in graph.node:
        node.input[:] = [new if name == old else name for name in node.input]


def _type(graph: Graph, name: str) -> tuple[tuple[int, ...] | None, int]:
    return graph.shape(name), graph.dtype_number(name)


def _output(graph: Graph, rng: Random) -> str | None:
    """A value that is returned, too: it has two readers."""
    returned = {value.name for value in graph.graph.output}
    found = [name for n in graph.graph.node for name in n.output if name and name not in returned]
    if not found:
        return None
    name = rng.choice(found)
    graph.graph.output.add(name=name)
    return f"{name} is returned"


def _floats(graph: Graph, least: int, most: int) -> list[onnx.TensorProto]:
    return [
        t for t in graph.graph.initializer
        if t.data_type in (1, 10, 11) and least <= np.prod(t.dims, dtype=float) <= most
    ]  # fmt: skip


def _filled(array: np.ndarray, how: str, rng: np.random.Generator) -> np.ndarray:
    """Other numbers in a weight; of a variance no negative ones."""
    if how == "drawn":
        made = rng.standard_normal(array.shape) * (array.std() or 1.0)
        return np.abs(made) if array.min() >= 0 else made
    if how == "half zeros":
        return np.where(rng.random(array.shape) < 0.5, 0, array)
    known = {"zeros": 0.0, "ones": 1.0, "one number": float(array.flat[0]) or 0.25}
    return np.full(array.shape, known[how]) if how in known else np.flip(array)


def _weights(graph: Graph, rng: Random) -> str | None:
    found = _floats(graph, 2, 1 << 22)
    if not found:
        return None
    tensor = rng.choice(found)
    how = rng.choice(("drawn", "zeros", "ones", "one number", "half zeros", "the other way round"))
    array = extra("onnx").numpy_helper.to_array(tensor)
    new = _filled(array, how, np.random.default_rng(rng.randrange(1 << 31)))
    _set(tensor, new.astype(array.dtype))
    return f"{tensor.name}: {how}"


def _scalar(graph: Graph, rng: Random) -> str | None:
    found = _floats(graph, 1, 1)
    if not found:
        return None
    tensor = rng.choice(found)
    array = extra("onnx").numpy_helper.to_array(tensor)
    old = float(array.flat[0])
    new = rng.choice((0.0, 1.0, -1.0, 0.5, 2.0, 6.0, -old, old + 0.1, 1e-3))
    _set(tensor, np.full(array.shape, new, array.dtype))
    return f"{tensor.name} = {new:g}"


def _set(tensor: onnx.TensorProto, array: np.ndarray) -> None:
    whole = np.ascontiguousarray(array).reshape(array.shape)  # which makes a vector of a number
    tensor.CopyFrom(extra("onnx").numpy_helper.from_array(whole, tensor.name))


def _constant_to_input(graph: Graph, rng: Random) -> str | None:
    found = _floats(graph, 1, _WEIGHT)
    if not found:
        return None
    tensor = rng.choice(found)
    name = tensor.name
    make = extra("onnx").helper.make_tensor_value_info
    graph.graph.input.append(make(name, tensor.data_type, list(tensor.dims)))
    replace_all(graph.graph.initializer, [t for t in graph.graph.initializer if t.name != name])
    return f"{name} is an input"


def _input_to_constant(graph: Graph, rng: Random) -> str | None:
    found = [v for v in graph.graph.input if v.type.tensor_type.elem_type == 1]
    if len(graph.graph.input) < 2 or not found:
        return None
    value = rng.choice(found)
    shape, name = graph.shape(value.name), value.name
    made = np.random.default_rng(rng.randrange(1 << 31)).standard_normal(shape).astype("float32")
    graph.graph.initializer.append(extra("onnx").numpy_helper.from_array(made, name))
    replace_all(graph.graph.input, [v for v in graph.graph.input if v.name != name])
    return f"{name} is a constant"


MUTATIONS: Mapping[str, Mutate] = {
    "extent": mutate_extent,
    "batch": mutate_batch,
    "image": mutate_image,
    "attribute": mutate_attribute,
    "group": mutate_group,
    "weights": _weights,
    "scalar": _scalar,
    "constant to input": _constant_to_input,
    "input to constant": _input_to_constant,
    "op": _op,
    "drop": _drop,
    "output": _output,
}
# Those that find most are drawn most.
DRAWN = (*MUTATIONS, "extent", "extent", "image", "attribute", "attribute", "attribute", "op")


@dataclass(frozen=True)
class Change:
    """One change, by its kind and seed; `model` is None where ONNX's checks refuse it."""

    kind: str
    seed: int
    told: str
    model: onnx.ModelProto | None


def mutated(model: onnx.ModelProto, kind: str, seed: int) -> Change | None:
    """One change of a typed model; None where there is nothing to change so."""
    copy = type(model)()
    copy.CopyFrom(model)
    told = MUTATIONS[kind](Graph(copy), Random(seed))
    if told is None:
        return None
    tidy(copy)
    return Change(kind, seed, told, typed(copy))
