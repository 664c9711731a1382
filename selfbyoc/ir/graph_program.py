"""An OpGraph as a program of the vocabulary, which `emit` writes."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..errors import UnsupportedOp
from ..graph import OpCall, OpGraph, Value
from ..language.nodes import Item, Node, Op, Program
from ..ops.vocabulary import KINDS, written
from ..tvm import tir
from ..tvm.types import Attr, PrimExpr
from .generation import writer

Written = tuple[Program, dict[str, Any], dict[str, np.ndarray]]

# Attributes that say what an op may do, not what it computes: TVM's ops have none of them.
_LEAVES = {"batch_matmul": ("may_round_to",)}


def written_as(
    graph: OpGraph, args: Mapping[str, Any], constants: Mapping[str, np.ndarray]
) -> Written:
    """The program, the types of its arguments, and the constants among them. `args` replaces types
    of inputs, `constants` says which of them are none. Raises UnsupportedOp for an op that cannot
    be written.
    """
    symbols = Symbols()
    types: dict[str, Any] = {}
    names: dict[Value, str] = {}
    arrays = dict(constants)
    for value in graph.inputs:
        names[value] = _fresh(value.name, types)
        types[names[value]] = (symbols.shape(value.shape), value.dtype)
    types |= args
    for value in dict.fromkeys(v for call in graph.ops for v in call.inputs):
        if value.is_constant and value not in names:
            names[value] = _fresh(value.name or "constant", {**types, **arrays})
            arrays[names[value]] = array_of(value)
    program = _program(graph, names, symbols)
    signature = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY)
        for name in dict.fromkeys((*types, *arrays))
    ]
    program.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]
    return program, types, arrays


def array_of(value: Value) -> np.ndarray:
    """A constant's elements."""
    if value.data is not None:
        return np.asarray(value.data)
    return np.full(value.shape, value.scalar, value.dtype)


def _program(graph: OpGraph, names: Mapping[Value, str], symbols: Symbols) -> Callable[..., Any]:
    def program(**given: Node) -> Any:
        nodes: dict[Value, Node] = {value: given[name] for value, name in names.items()}
        for call in graph.ops:
            attrs = attrs_of_call(call, symbols)
            made = Op(call.kind, tuple(nodes[v] for v in call.inputs), attrs)
            if len(call.outputs) == 1:
                nodes[call.outputs[0]] = made
            else:
                nodes |= {value: Item(made, i) for i, value in enumerate(call.outputs)}
        return tuple(nodes[value] for value in graph.outputs)

    return program


def attrs_of_call(call: OpCall, symbols: Symbols) -> dict[str, Attr]:
    """The attributes that an op is written with. Raises UnsupportedOp for one that cannot be."""
    kind = KINDS.get(call.kind)
    if kind is None or writer.function_of(call.kind) is None:
        text = f"{call.name}: {call.kind} cannot be written as an op of the vocabulary"
        raise UnsupportedOp(f"{text}; known: {written()}")
    known = (*kind.attrs, *kind.read_attrs) if kind.is_written else tuple(call.attrs)
    left = _LEAVES.get(call.kind, ())
    return {
        name: symbols.attribute(value)
        for name, value in call.attrs.items()
        if name in known and name not in left
    }


def _fresh(name: str, taken: Mapping[str, Any]) -> str:
    """An argument's name: a word of Python that nobody else has."""
    base = re.sub(r"\W", "_", name) or "argument"
    base = f"_{base}" if base[0].isdigit() else base
    found, count = base, 1
    while found in taken:
        count += 1
        found = f"{base}_{count}"
    return found


class Symbols:
    """Extents that are text, as expressions of TVM: one variable a name."""

    def __init__(self, variables: Mapping[str, PrimExpr] | None = None) -> None:
        self.variables: dict[str, PrimExpr] = dict(variables or {})

    def shape(self, shape: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(self.extent(e) for e in shape)

    def extent(self, extent: Any) -> Any:
        if extent is None:
            return writer.open_extent("unknown")
        return self._expression(extent) if isinstance(extent, str) else int(extent)

    def attribute(self, value: Attr) -> Attr:
        """A shape as an attribute, such as that of a reshape."""
        if isinstance(value, tuple) and any(isinstance(e, str) for e in value):
            return self.shape(value)
        return value

    def _expression(self, text: str) -> PrimExpr:
        def of(node: ast.expr) -> Any:
            if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
                return _OPERATORS[type(node.op)](of(node.left), of(node.right))
            if isinstance(node, ast.Name):
                return self.variables.setdefault(node.id, writer.open_extent(node.id))
            if isinstance(node, ast.Constant) and isinstance(node.value, int):
                return tir.IntImm("int64", node.value)
            raise UnsupportedOp(f"the extent {text!r} cannot be written: {ast.unparse(node)}")

        return of(ast.parse(text, mode="eval").body)


_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
}
