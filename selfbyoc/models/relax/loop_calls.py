"""What calls the step of a loop over and over: functions of Relax, in what calls which."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from tvm import relax

from ...tvm import tir, tvm
from ...tvm.types import BlockBuilder, Expr, Function, Type
from .algebra import Extent

_NUMBER, _BOOL = relax.TensorType([], "int64"), relax.TensorType([], "bool")


class Functions:
    """Functions beside main by their global variables, with names of their own."""

    def __init__(self) -> None:
        self.of: dict[Any, Any] = {}
        self.count = 0

    def declared(self, hint: str, ty: Type) -> Expr:
        """The variable of a function of this type that is yet to come."""
        var = tvm.ir.GlobalVar(f"{hint}_{self.count}")
        self.count += 1
        relax.expr._update_type(var, ty)
        return var

    def add(self, hint: str, func: Function) -> Expr:
        """The variable of a function."""
        var = self.declared(hint, func.ty)
        self.of[var] = func
        return var


@dataclass(frozen=True)
class Signature:
    """A step by its variable, and its types: it takes the number of the step, a condition, so many
    states and what it reads besides; it returns a condition, the states, and a row of each output.
    """

    var: Expr
    step: Function
    states: int

    @cached_property
    def results(self) -> list[Type]:
        """The types of the states and rows that a step returns."""
        return list(self.step.ret_ty.fields)[1:]

    @cached_property
    def returned(self) -> Type:
        """What a loop returns: how many steps were taken, whether it goes on, the states, and the
        rows one after another. Sizes that only a call knows are left away.
        """
        params = [p.ty for p in self.step.params[2 : 2 + self.states]]
        rows = self.results[self.states :]
        joined = [relax.TensorType(dtype=str(t.dtype), ndim=t.ndim + 1) for t in rows]
        return relax.TupleType([_NUMBER, _BOOL, *map(_if_known, params), *joined])

    def params(self) -> tuple[list[Expr], list[Type]]:
        """Parameters of a loop, the same for all its functions, with sizes of their own: level,
        number of the step, most steps, condition, states, and what is read; and the types of what
        its steps return, in these sizes.
        """
        fresh = relax.utils.copy_with_new_vars(self.step)
        told = [("level", _NUMBER), ("number", _NUMBER), ("most", _NUMBER), ("goes_on", _BOOL)]
        mine = [relax.Var(name, ty) for name, ty in told]
        return [*mine, *fresh.params[2:]], list(fresh.ret_ty.fields)[1:]


def _if_known(ty: Type) -> Type:
    sizes = extents(ty)
    if all(isinstance(e, int) for e in sizes):
        return ty
    return relax.TensorType(dtype=str(ty.dtype), ndim=ty.ndim)


def extents(ty: Type) -> list[Extent | None]:
    """The sizes of a tensor's axes; None for each that its type does not say."""
    if not isinstance(ty.shape, relax.ShapeExpr):
        return [None] * ty.ndim
    return [int(e) if isinstance(e, tir.IntImm) else e for e in ty.shape.values]


def repeated(functions: Functions, signature: Signature) -> Expr:
    """The variable of a function that takes up to 2^level steps, one or more: it is called where
    the first one has to be taken.
    """
    params, _ = signature.params()
    ty = relax.FuncType([p.ty for p in params], signature.returned)
    loop = functions.declared("loop", ty)
    builder = relax.BlockBuilder()
    level = params[0]
    with builder.function("loop", params, private=True):
        is_one = builder.emit(relax.op.equal(level, relax.const(0, "int64")))
        one = _block(builder, lambda: _one(builder, signature, params))
        two = _block(builder, lambda: _two(builder, signature, params, loop))
        builder.emit_func_output(builder.emit(relax.If(is_one, one, two)))
    functions.of[loop] = _typed(builder, signature)
    return loop


def _typed(builder: BlockBuilder, signature: Signature) -> Function:
    """The function of a builder, as it is called."""
    (func,) = builder.get().functions.values()
    return relax.Function(func.params, func.body, signature.returned, True)


def _block(builder: BlockBuilder, emit: Callable[[], Expr]) -> Expr:
    """What is emitted there as the branch of an If."""
    builder._begin_binding_block()
    result = emit()
    return relax.SeqExpr([builder._end_block()], result)


def _one(builder: BlockBuilder, signature: Signature, params: Sequence[Expr]) -> Expr:
    """One step, and whether another one follows."""
    emit, (_, number, most, _, *rest) = builder.emit, params
    one, on = (p.ty for p in signature.step.params[:2])
    at = [_as(builder, number, one.ndim), _as(builder, relax.const(True, "bool"), on.ndim)]
    found = emit(relax.Call(signature.var, [*at, *rest]))
    goes_on, *results = (
        emit(relax.TupleGetItem(found, n)) for n in range(1 + len(signature.results))
    )
    following = emit(relax.op.add(number, relax.const(1, "int64")))
    is_within = emit(relax.op.less(following, most))
    goes_on = emit(relax.op.logical_and(_as(builder, goes_on, 0), is_within))
    of_rows = zip(results[signature.states :], signature.results[signature.states :], strict=True)
    cast = [builder.match_cast(x, _sized(ty)) for x, ty in of_rows]
    rows = [emit(relax.op.expand_dims(row, 0)) for row in cast]
    pairs = zip(results, signature.returned.fields[2 : 2 + signature.states], strict=False)
    states = [builder.match_cast(x, ty) for x, ty in pairs]
    return emit(relax.Tuple([following, goes_on, *states, *rows]))


def _as(builder: BlockBuilder, x: Expr, ndim: int) -> Expr:
    """One element, of so many axes."""
    if x.ty.ndim == ndim:
        return x
    return builder.emit(relax.op.reshape(x, relax.ShapeExpr([1] * ndim)))


def _two(builder: BlockBuilder, signature: Signature, params: Sequence[Expr], loop: Expr) -> Expr:
    """The first half of the steps, and the second, unless it ends before."""
    emit, (level, number, most, goes_on, *rest) = builder.emit, params
    below = emit(relax.op.subtract(level, relax.const(1, "int64")))
    # Not called by name: RunCodegen (0.27) goes into what is called, and would never end.
    again = emit(relax.op.make_closure(loop, relax.Tuple([])))
    first = _invoked(builder, again, [below, number, most, goes_on, *rest], signature)
    count, read = 2 + len(signature.results), rest[signature.states :]
    items = [emit(relax.TupleGetItem(first, n)) for n in range(count)]
    states = slice(2, 2 + signature.states)

    def more() -> Expr:
        given = [below, items[0], most, items[1], *items[states], *read]
        second = _invoked(builder, again, given, signature)
        others = [emit(relax.TupleGetItem(second, n)) for n in range(count)]
        pairs = zip(items[states.stop :], others[states.stop :], strict=True)
        types = signature.results[signature.states :]
        rows = [_joined(builder, *pair, ty) for pair, ty in zip(pairs, types, strict=True)]
        return emit(relax.Tuple([*others[: states.stop], *rows]))

    def ended() -> Expr:
        return emit(relax.Tuple(items))

    return emit(relax.If(items[1], _block(builder, more), _block(builder, ended)))


def _invoked(
    builder: BlockBuilder, loop: Expr, given: Sequence[Expr], signature: Signature
) -> Expr:
    """The result of a closure; TVM keeps no type of that."""
    called = relax.op.invoke_pure_closure(loop, relax.Tuple(given), relax.AnyType())
    return builder.match_cast(builder.emit(called), signature.returned)


def _sized(ty: Type) -> Type:
    """A tensor's type with a new symbol for each size that is no number."""
    sizes = [e if isinstance(e, int) else tir.Var("size", "int64") for e in extents(ty)]
    return relax.TensorType(sizes, str(ty.dtype))


def _joined(builder: BlockBuilder, first: Expr, second: Expr, row: Type) -> Expr:
    """Rows after rows. Sizes of a row that are no numbers are what the first has."""
    sizes, dtype = list(_sized(row).shape.values), str(row.dtype)
    parts = [
        builder.match_cast(x, relax.TensorType([tir.Var("rows", "int64"), *sizes], dtype))
        for x in (first, second)
    ]
    return builder.emit(relax.op.concat(parts, 0))


def started(loop: Expr, signature: Signature) -> Function:
    """A function that takes no step where none is to be taken."""
    params, results = signature.params()
    builder = relax.BlockBuilder()
    emit, (_, number, most, goes_on, *rest) = builder.emit, params
    states, rows = rest[: signature.states], results[signature.states :]

    def steps() -> Expr:
        return emit(relax.Call(loop, params))

    def none() -> Expr:
        empty = [emit(_empty(row)) for row in rows]
        return emit(relax.Tuple([number, goes_on, *states, *empty]))

    with builder.function("started", params, private=True):
        is_within = emit(relax.op.less(number, most))
        begins = emit(relax.op.logical_and(goes_on, is_within))
        chosen = relax.If(begins, _block(builder, steps), _block(builder, none))
        builder.emit_func_output(emit(chosen))
    return _typed(builder, signature)


def _empty(row: Type) -> Expr:
    """No rows; a size that only a step would know is 0, as ONNX Runtime has it."""
    sizes = [0, *(0 if e is None else e for e in extents(row))]
    if not all(isinstance(e, int) for e in sizes):
        return relax.op.zeros(relax.ShapeExpr(sizes), str(row.dtype))
    return relax.op.astype(relax.const(np.zeros(sizes, "float32")), str(row.dtype))
