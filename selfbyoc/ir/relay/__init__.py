"""Relay: read a function into an OpGraph."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from tvm import relay

from ...graph import OpGraph, Symbol, Value
from ...ops.resize import size_of
from ...ops.vocabulary import read_op
from ...printable import shown_name
from ...tvm import attrs_dict, constant_numpy, tvm
from ...tvm.types import Attr, AttrsNode, Expr, Function, Type
from ..canonical import canonicalize
from ..reader import Reader, Written
from .any import instance, names_of, sizes_for
from .walk import children, postorder

TypeOf = Callable[[Any], Any]
_NONE: Mapping[int, Symbol] = MappingProxyType({})


# Sizes of symbols at which a function is read, by number: messages call them by name.
_symbols: ContextVar[Mapping[int, Symbol]] = ContextVar("selfbyoc_symbols", default=_NONE)


def _value(ty: Type, name: str = "", **known: Any) -> Value:
    symbols = _symbols.get()
    numbers = (int(e) if isinstance(e, tvm.tir.IntImm) else None for e in ty.shape)
    shape = tuple(n if n is None else symbols.get(n, n) for n in numbers)
    return Value(shape, str(ty.dtype), name, **known)


def _values(ty: Type, name: str = "") -> tuple[Value, ...]:
    """The tensors of a result; anything that is no tensor (a closure, a nested tuple) is opaque."""
    if isinstance(ty, relay.TensorType):
        return (_value(ty, name),)
    if isinstance(ty, relay.TupleType) and all(isinstance(f, relay.TensorType) for f in ty.fields):
        return tuple(_value(f, name) for f in ty.fields)
    return (Value((None,), "opaque", name),)


def neutral(name: str, node: AttrsNode | None, result: Type) -> tuple[str, dict[str, Attr]]:
    """A Relay op by its name, attribute node and result type -> its kind and attributes."""
    kind, attrs = read_op(name, attrs_dict(node))
    if kind in ("reshape", "broadcast_to"):
        attrs["shape"] = _values(result)[0].shape
    elif kind == "resize2d":
        attrs["size"] = size_of(attrs["layout"], _values(result)[0])
    elif kind == "transpose":
        ndim = _values(result)[0].ndim
        attrs["axes"] = tuple(a % ndim for a in attrs["axes"] or range(ndim - 1, -1, -1))
    elif kind == "adaptive_avg_pool2d" and attrs["output_size"] == (1, 1):
        return "global_avg_pool2d", {"layout": attrs["layout"]}
    return kind, attrs


class _Reader(Reader):
    """One walk over a function body: every expression gets its values, every call its OpCall."""

    def __init__(self, inlines: bool, type_of: TypeOf) -> None:
        super().__init__(inlines)
        self.type_of = type_of

    def read(self, root: Expr) -> None:
        """Visit everything that the root is computed from."""
        for expr in postorder(root, self.values):
            self.values[expr] = self._visit(expr)

    def _visit(self, expr: Expr) -> tuple[Value, ...]:
        if isinstance(expr, relay.Constant):
            return (_constant(expr),)
        if isinstance(expr, relay.Tuple):
            return tuple(v for f in expr.fields for v in self.values[f])
        if isinstance(expr, relay.TupleGetItem):
            return self.item(expr, expr.tuple_value, self.values[expr.tuple_value])
        if isinstance(expr, relay.Call):
            return self._call(expr)
        return self._opaque(expr, type(expr).__name__)

    def _call(self, call: relay.Call) -> tuple[Value, ...]:
        if self.inlines and isinstance(call.op, relay.Function):
            return self._inline(call)
        if not isinstance(call.op, tvm.ir.Op):
            return self._opaque(call, "call")
        inputs, sources = self._arguments(call)
        kind, attrs = neutral(call.op.name, call.attrs, self.type_of(call))
        return self._emit(call, kind, inputs, attrs, sources)

    def _arguments(self, call: relay.Call) -> tuple[tuple[Value, ...], list[Expr]]:
        """The tensors that go in; a tuple is flattened and belongs to the call."""
        tuples = [a for a in call.args if isinstance(a, relay.Tuple)]
        return tuple(v for a in call.args for v in self.values[a]), tuples

    def _inline(self, call: relay.Call) -> tuple[Value, ...]:
        """A call of a function literal (a composite): its body, with the arguments in place."""
        for param, arg in zip(call.op.params, call.args, strict=True):
            self.values[param] = self.values[arg]
        self.read(call.op.body)
        return self.values[call.op.body]

    def _opaque(self, expr: Expr, kind: str) -> tuple[Value, ...]:
        inputs = tuple(v for child in children(expr) for v in self.values[child])
        return self._emit(expr, kind, inputs, {}, [])

    def _emit(
        self,
        expr: Expr,
        kind: str,
        inputs: tuple[Value, ...],
        attrs: dict[str, Attr],
        sources: list[Expr],
    ) -> tuple[Value, ...]:
        outputs = _values(self.type_of(expr), kind)
        return self.add(expr, kind, inputs, attrs, outputs, [*sources, expr])


def _constant(expr: relay.Constant) -> Value:
    value = _value(expr.checked_type, "const", is_constant=True)
    if math.prod(value.shape) != 1:
        return value
    return replace(value, scalar=constant_numpy(expr).reshape(-1)[0].item())


def parameters(func: Function) -> tuple[Value, ...]:
    """The tensors that a function takes, in order."""
    return tuple(v for p in func.params for v in _values(p.checked_type, p.name_hint))


def declared(func: Function) -> tuple[Value, ...]:
    """The tensors that a function's text types, before types are inferred."""
    return tuple(v for p in func.params for v in _values(p.type_annotation, p.name_hint))


def results(func: Function) -> tuple[Value, ...]:
    """The tensors that a function returns, in order."""
    return _values(func.checked_type.ret_type)


def read(func: relay.Function, *, raw: bool = False) -> OpGraph:
    """A typed Relay function -> its OpGraph, importer noise read away.

    `raw` is for external functions: as written, and with the composites inside read through.
    """
    graph = _written(func, inlines=raw).graph
    return graph if raw else canonicalize(graph)


def sizes_read(func: relay.Function) -> dict[str, int]:
    """The sizes at which extents of `Any` are read, by name."""
    return sizes_for(func, names_of(func))


def by_name() -> AbstractContextManager[None]:
    """The extents of a call have no names yet."""
    return nullcontext()


def read_at_sizes(func: relay.Function) -> OpGraph:
    """The same at some sizes for extents of `Any`."""
    sizes = sizes_read(func)
    made = instance(func, names_of(func), sizes) if sizes else None
    if made is None:
        return read(func)
    with _named(sizes):
        return canonicalize(_written(func, inlines=False, type_of=made.type_of).graph)


def read_raw_at(func: relay.Function, sizes: Mapping[str, int]) -> OpGraph:
    """An external function with these numbers for its symbols, as written."""
    made = instance(func, names_of(func), sizes)
    assert made is not None, f"the types of {func.attrs['global_symbol']} do not fit {sizes}"
    with _named(sizes):
        return read(made.func, raw=True)


@contextmanager
def _named(sizes: Mapping[str, int]) -> Iterator[None]:
    token = _symbols.set({int(s): s for s in sizes.values() if isinstance(s, Symbol)})
    try:
        yield
    finally:
        _symbols.reset(token)


def read_as_written(func: relay.Function) -> Written:
    """A typed Relay function and its IR nodes, nothing read away or through."""
    return _written(func, inlines=False)


def _own_type(expr: Expr) -> Type:
    return expr.checked_type


def _written(func: relay.Function, inlines: bool, type_of: TypeOf = _own_type) -> Written:
    reader = _Reader(inlines, type_of)
    for param in func.params:
        reader.values[param] = _values(type_of(param), shown_name(param.name_hint))
    reader.read(func.body)
    inputs = tuple(v for p in func.params for v in reader.values[p])
    return reader.written(reader.finish(inputs, reader.values[func.body]))
