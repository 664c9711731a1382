"""Relax: read a function into an OpGraph."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from tvm import relax

from ...graph import OpCall, OpGraph, Value
from ...ops.resize import size_of
from ...ops.vocabulary import read_op
from ...printable import shown_name
from ...tvm import constant_numpy, tvm
from ...tvm.types import Attr, AttrsNode, Expr, Function, Type
from ..canonical import canonicalize
from ..reader import Reader, Written
from .symbols import at, number, ranges, usual_sizes
from .symbols import by_name as by_name

# 0.27 moved the graph constant from relax to tvm.ir under another name.
Constant = relax.Constant if hasattr(relax, "Constant") else tvm.ir.GenericConst


def _value(ty: Type, name: str = "", **known: Any) -> Value:
    # Of an unknown number of axes (-1), one of unknown extent: nothing that is known.
    dims = ty.shape.values if isinstance(ty.shape, relax.ShapeExpr) else [None] * abs(ty.ndim)
    shape = tuple(number(e) for e in dims)
    return Value(shape, str(ty.dtype), name, **known)


def _values(ty: Type, name: str = "") -> tuple[Value, ...]:
    """The tensors of a result; anything that is no tensor (a shape, a nested tuple) is opaque."""
    if isinstance(ty, relax.TensorType):
        return (_value(ty, name),)
    if isinstance(ty, relax.TupleType) and all(isinstance(f, relax.TensorType) for f in ty.fields):
        return tuple(_value(f, name) for f in ty.fields)
    return (Value((None,), "opaque", name),)


class Attributes(Mapping[str, Any]):
    """An attribute node as a mapping: 0.27's have neither keys() nor []."""

    def __init__(self, node: AttrsNode | None) -> None:
        self.node = node

    def __getitem__(self, name: str) -> Attr:
        if isinstance(self.node, tvm.ir.DictAttrs):
            return self.node[name]
        try:
            return getattr(self.node, name)
        except AttributeError as err:
            raise KeyError(name) from err

    def __iter__(self) -> Iterator[str]:
        if self.node is None:
            return iter(())
        if isinstance(self.node, tvm.ir.DictAttrs):
            return iter(map(str, self.node.keys()))
        return (field.name for field in type(self.node).__tvm_ffi_type_info__.fields)

    def __len__(self) -> int:
        return len(list(self))


# An identity that partitioning puts on the items of tuples (partition/relax/__init__.py says why).
ITEM = "grad.no_grad"


class _Reader(Reader):
    """One walk over the bindings: every variable gets its values, every call its OpCall."""

    def __init__(self, inlines: bool) -> None:
        super().__init__(inlines)
        self.tuples: dict[Any, Any] = {}  # variable -> the relax.Tuple it is bound to
        self.locals: dict[Any, relax.Function] = {}
        self.taken_from: dict[Any, int] = {}  # variable of a tuple's item -> position of its op

    def read(self, body: relax.SeqExpr) -> tuple[Value, ...]:
        """Visit every binding of a function body; its result."""
        for block in body.blocks:
            for binding in block.bindings:
                if isinstance(binding, relax.MatchCast) and _is_tensor(binding.var):
                    self._cast(binding)
                    continue
                self._bind(binding.var, binding.value)
        return self._of(body.body)

    def _cast(self, binding: relax.MatchCast) -> None:
        """A tensor whose sizes are looked at when the model runs: an op that no composite has, for
        TVM fuses nothing over it.
        """
        given = self._of(binding.value)
        self.values[binding.var] = self._emit(
            binding.var, binding.value, "match_cast", given, {}, []
        )

    def _bind(self, var: relax.Var, value: Expr) -> None:
        if isinstance(value, relax.Function):
            self.locals[var] = value
            return
        if isinstance(value, relax.Tuple):
            self.tuples[var] = value
        if isinstance(value, relax.Call):
            self.values[var] = self._call(var, value)
        elif isinstance(value, relax.If):
            self.values[var] = self._emit(var, value, "If", (), {}, [])
        else:
            self.values[var] = self._of(value)
            if isinstance(value, relax.Var) and value in self.owner:
                self.owner[var] = self.owner[value]
            if isinstance(value, relax.TupleGetItem) and value.tuple_value in self.owner:
                self.taken_from[var] = self.owner[value.tuple_value]

    def _of(self, expr: Expr) -> tuple[Value, ...]:
        """The values of an argument: a variable, or a leaf written in place."""
        if expr in self.values:
            return self.values[expr]
        if isinstance(expr, Constant):
            self.values[expr] = (_constant(expr),)
            return self.values[expr]
        if isinstance(expr, relax.Tuple):
            return tuple(v for f in expr.fields for v in self._of(f))
        if isinstance(expr, relax.TupleGetItem):
            return self.item(expr, expr.tuple_value, self._of(expr.tuple_value))
        return ()  # shapes, prim values, global variables: attributes, not tensors

    def _call(self, var: relax.Var, call: relax.Call) -> tuple[Value, ...]:
        if self.inlines and isinstance(call.op, relax.Var) and call.op in self.locals:
            return self._inline(self.locals[call.op], call)
        inputs = tuple(v for a in call.args for v in self._of(a))
        if not isinstance(call.op, tvm.ir.Op):
            return self._emit(var, call, "call", inputs, {}, [])
        name = call.op.name.removeprefix("relax.")
        if name == ITEM and call.args[0] in self.taken_from:
            self.items[self.taken_from[call.args[0]]].append(call)
            return inputs
        if name == ITEM and isinstance(call.args[0].ty, relax.TupleType):
            return inputs  # last ops side by side (partition/relax/side_by_side.py)
        kind, attrs = read_op(name, Attributes(call.attrs))
        attrs |= _argument_attrs(kind, call)
        if kind == "transpose":
            ndim = inputs[0].ndim
            attrs["axes"] = tuple(a % ndim for a in attrs["axes"] or range(ndim - 1, -1, -1))
        if kind == "adaptive_avg_pool2d" and attrs["output_size"] == (1, 1):
            kind, attrs = "global_avg_pool2d", {"layout": attrs["layout"]}
        tuples = [self.tuples.get(a, a) for a in call.args]
        sources = [t for t in tuples if isinstance(t, relax.Tuple)]
        return self._emit(var, call, kind, inputs, attrs, sources)

    def _inline(self, func: relax.Function, call: relax.Call) -> tuple[Value, ...]:
        for param, arg in zip(func.params, call.args, strict=True):
            self.values[param] = self._of(arg)
        return self.read(func.body)

    def _emit(
        self,
        var: relax.Var,
        expr: Expr,
        kind: str,
        inputs: tuple[Value, ...],
        attrs: dict[str, Attr],
        sources: list[Expr],
    ) -> tuple[Value, ...]:
        return self.add(var, kind, inputs, attrs, _values(var.ty, var.name), [*sources, expr])


def _is_tensor(var: relax.Var) -> bool:
    return isinstance(var.ty, relax.TensorType)


def _argument_attrs(kind: str, call: relax.Call) -> dict[str, Attr]:
    """What Relax passes as arguments and the neutral form keeps as attributes."""
    if kind in ("reshape", "broadcast_to"):
        return {"shape": _values(call.ty)[0].shape}
    if kind == "resize2d":
        return {"size": size_of(call.attrs.layout, _values(call.ty)[0])}
    if kind == "clip" and len(call.args) == 3:
        return {"a_min": float(call.args[1].value), "a_max": float(call.args[2].value)}
    return {}


def _constant(expr: Expr) -> Value:
    value = _value(expr.ty, "const", is_constant=True)
    if math.prod(value.shape) != 1:
        return value
    return replace(value, scalar=constant_numpy(expr).reshape(-1)[0].item())


def parameters(func: Function) -> tuple[Value, ...]:
    """The tensors that a function takes, in order."""
    return tuple(v for p in func.params for v in _values(p.ty, p.name))


def results(func: Function) -> tuple[Value, ...]:
    """The tensors that a function returns, in order."""
    return _values(func.ret_ty)


def read(func: relax.Function, *, raw: bool = False) -> OpGraph:
    """A Relax function -> its OpGraph, importer noise read away.

    `raw` is for external functions: as written, and with the composites inside read through.
    """
    graph = _written(func, inlines=raw).graph
    return graph if raw else canonicalize(graph)


def sizes_read(func: relax.Function) -> dict[str, int]:
    """The sizes at which symbolic extents are read, by name."""
    return usual_sizes(func, ranges(func))


def read_at_sizes(func: relax.Function) -> OpGraph:
    """The same at some sizes for symbolic extents."""
    with at(func, sizes_read(func)):
        return read(func)


def read_as_written(func: relax.Function) -> Written:
    """A Relax function and its IR nodes, nothing read away or through."""
    return _written(func, inlines=False)


def _written(func: relax.Function, inlines: bool) -> Written:
    reader = _Reader(inlines)
    for param in func.params:
        reader.values[param] = _values(param.ty, shown_name(param.name))
    outputs = reader.read(func.body)
    inputs = tuple(v for p in func.params for v in reader.values[p])
    return reader.written(reader.finish(inputs, outputs))


def read_call(call: relax.Call) -> OpCall:
    """One call of an op, as it stands in a function; symbolic extents are their texts."""
    reader = _Reader(inlines=False)
    with by_name():
        for arg in call.args:
            for leaf in arg.fields if isinstance(arg, relax.Tuple) else [arg]:
                if isinstance(leaf, relax.Var):
                    reader.values[leaf] = _values(leaf.ty, leaf.name)
        reader._call(relax.Var("result", call.ty), call)
    return reader.ops[0]
