"""A program as a model of the TVM at hand, as a neutral graph, and as numbers."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...analysis.verify.inputs import arrays
from ...errors import InputError
from ...graph import OpCall, OpGraph, Value, name_ops
from ...ir.emit import emit
from ...language.nodes import Arg, Item, Node, Op
from ...models.onnx_model import import_onnx
from ...ops.fixed_point import MOST_SHIFTED
from ...ops.vocabulary import KINDS, complete
from ...tvm import GENERATION
from ...tvm.types import IRModule
from .generation import planter
from .infer import infer
from .onnx_writer import onnx_model
from .program import CONSTANT, ITEM, Program

Array = np.ndarray


def names(program: Program) -> dict[int, str]:
    """Each leaf's name in the model."""
    return {i: f"x{n}" for n, i in enumerate(program.leaves())}


def graph_of(program: Program) -> OpGraph:
    """The program as a graph, without any reader or rule of this library on the way."""
    types, called = infer(program), names(program)
    values: dict[int, tuple[Value, ...]] = {}
    calls = []
    for index, node in enumerate(program.nodes):
        if node.is_leaf:
            scalar, fixed = node.value, node.kind == CONSTANT
            seven = fixed and has_seven_bits(program, node.shape, node.dtype)
            values[index] = (Value(node.shape, node.dtype, called[index], fixed, scalar, seven),)
        elif node.kind == ITEM:
            values[index] = (values[node.inputs[0]][node.attrs["index"]],)
        else:
            outputs = tuple(Value(shape, dtype) for shape, dtype in types[index])
            ins = tuple(values[i][0] for i in node.inputs)
            known = complete(node.kind, node.attrs) if node.kind in KINDS else dict(node.attrs)
            kind, more = _READ.get(node.kind, (node.kind, {}))
            calls.append(OpCall(kind, ins, {**more, **known}, outputs))
            values[index] = outputs
    inputs = tuple(values[i][0] for i in program.leaves())
    return OpGraph(inputs, name_ops(calls), tuple(values[i][0] for i in program.outputs))


def has_seven_bits(program: Program, shape: Sequence[int], dtype: str) -> bool:
    """Whether a weight has 7 bits: those of every other program have."""
    return program.seed % 2 == 1 and dtype in ("int8", "uint8") and len(shape) > 1


# What only readers set and no program has to write, and a kind that is never left as it is.
_READ: dict[str, tuple[str, dict[str, Any]]] = {
    "requantize": ("requantize", {"input_zero_point": 0, "output_zero_point": 0}),
    "matmul": ("batch_matmul", {"transpose_a": False, "transpose_b": False}),
    "conv2d": ("conv2d", {"out_layout": None}),
    "quantize": ("quantize", {"ties": "away" if GENERATION == "relay" else "even"}),
    "round": ("round", {"ties": "away" if GENERATION == "relay" else "even"}),
}


def numbers(program: Program, graph: OpGraph, kind: str) -> dict[str, Array]:
    """An array for each leaf by its name: constants always the same, inputs of this kind."""
    fixed = {i: a for i, a in enumerate(_made(graph, "random", program.seed))}
    constants = {i: a for i, a in fixed.items() if graph.inputs[i].is_constant}
    made = arrays(graph, constants, kind, program.seed)
    return {v.name: a for v, a in zip(graph.inputs, made, strict=True)}


def inputs(program: Program, graph: OpGraph, kind: str) -> dict[str, Array]:
    """The arrays that a model is called with: those of the leaves that are no constants."""
    made = numbers(program, graph, kind)
    leaves = zip(program.leaves(), graph.inputs, strict=True)
    return {v.name: made[v.name] for i, v in leaves if program.nodes[i].kind != CONSTANT}


def _made(graph: OpGraph, kind: str, seed: int) -> list[Array]:
    return arrays(graph, {}, kind, seed)


def is_undefined(graph: OpGraph, values: Mapping[Value, Array]) -> bool:
    """Whether an op is told what it has no meaning for: a float that its integer cannot hold is
    cast, or bits are shifted by fewer than none or by all there are; or a value is larger than its
    dtype can say, and what is made of infinity then is a matter of order; or smaller. Of a maximum
    with what is no number TVM takes either.
    """
    return any(_is_undefined(call, values) for call in graph.ops)


_MAXIMA = ("relu", "clip", "maximum", "minimum", "max", "min", "max_pool2d")


def _is_undefined(call: OpCall, values: Mapping[Value, Array]) -> bool:
    if any(_is_beyond(value, values) for value in call.outputs):
        return True
    dtype = call.outputs[0].dtype
    last, is_integer = values[call.inputs[-1]], not dtype.startswith("float")
    if call.kind == "cast" and is_integer and last.dtype.kind == "f":
        info = np.iinfo(dtype)
        return not bool(((last > info.min - 1) & (last < info.max + 1)).all())
    if call.kind in _MAXIMA:
        return any(bool(np.isnan(values[v]).any()) for v in call.inputs)
    if call.kind in ("left_shift", "right_shift"):
        return bool(((last < 0) | (last >= np.iinfo(dtype).bits)).any())
    if call.kind == "requantize_by_channel":
        return bool(((last < 1) | (last > MOST_SHIFTED)).any())
    return False


def _is_beyond(value: Value, values: Mapping[Value, Array]) -> bool:
    """Whether floats are finite in NumPy's float64 and not in their own dtype, or are all so
    small there that they lose bits: our `exp` makes zeros of them, the C library does not.
    """
    array = values.get(value)
    if array is None or not value.dtype.startswith("float"):
        return False
    size = np.abs(array[np.isfinite(array)]).max(initial=0)
    limits = np.finfo(value.dtype)
    return bool(size > limits.max or 0 < size < limits.tiny)


def model(program: Program, given: dict[str, Array]) -> IRModule:
    """The program as an IRModule of the generation at hand."""
    if program.onnx:
        return import_onnx(onnx_model(program, given))
    called = names(program)
    leaves = {called[i]: program.nodes[i] for i in program.leaves()}
    constants = {n: given[n] for n, node in leaves.items() if node.kind == CONSTANT}
    types = {name: (node.shape, node.dtype) for name, node in leaves.items()}
    mod = emit(_Function(program), types, constants)
    if program.plant is None:
        return mod
    plant = program.plant
    if [op for op, _ in planter.op_calls(mod)].count(plant.op) <= plant.index:
        raise InputError(f"the model has no {plant.op} of number {plant.index} to change")
    return planter.planted(mod, plant.op, plant.index, **{plant.name: plant.value})


class _Function:
    """The program as `emit` wants it: a function whose arguments are the leaves."""

    def __init__(self, program: Program) -> None:
        self.program = program
        one = inspect.Parameter.POSITIONAL_OR_KEYWORD
        params = [inspect.Parameter(name, one) for name in names(program).values()]
        self.__signature__ = inspect.Signature(params)

    def __call__(self, **args: Arg) -> Node | tuple[Node, ...]:
        found: list[Node] = []
        called = names(self.program)
        for index, node in enumerate(self.program.nodes):
            ins: list[Node] = [found[i] for i in node.inputs]
            if node.is_leaf:
                found.append(args[called[index]])
            elif node.kind == ITEM:
                assert isinstance(ins[0], Op)
                found.append(Item(ins[0], node.attrs["index"]))
            else:
                found.append(Op(node.kind, tuple(ins), dict(node.attrs)))
        outputs = tuple(found[i] for i in self.program.outputs)
        return outputs if len(outputs) > 1 else outputs[0]
