"""Elementwise ops as one expression: what joined a kernel is part of a stage that it has anyway.

An epilogue becomes part of what the last stage writes, a prologue of what reads the argument. Each
op's result is bound by a `Let`, so that what is read twice (x * sigmoid(x)) is written once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ..graph import OpCall, Value
from ..language.match.epilogue import ancestors
from ..ops.vocabulary import compute_of
from ..tvm import dtype_of, te, tir
from ..tvm.rewrite import substitute
from ..tvm.types import PrimExpr, Shape, Tensor
from .info.ops import OpView
from .type_inference import check_types


@dataclass(frozen=True)
class _Bound:
    """A value as the op that reads it sees it: a variable or a number, whatever the index."""

    expr: PrimExpr
    shape: tuple[int, ...]
    dtype: str

    def __call__(self, *index: PrimExpr) -> PrimExpr:
        return self.expr


@dataclass(frozen=True)
class _Step:
    """One op: the variable that its result is bound to, and its element as a tensor's."""

    var: PrimExpr
    tensor: Tensor


class Absorbed:
    """Elementwise ops as a tensor that is not computed yet: it has shape and dtype, and an element
    is an expression. For a compute that reads each element about once.
    """

    def __init__(self, steps: Mapping[OpCall, _Step]) -> None:
        self.calls, self.steps = tuple(steps), tuple(steps.values())
        self.staged: Tensor | None = None

    def until(self, call: OpCall) -> Absorbed:
        """What one of the ops computes, as such a tensor too."""
        steps = dict(zip(self.calls, self.steps, strict=True))
        return Absorbed({needed: steps[needed] for needed in ancestors(call, self.calls)})

    @property
    def value(self) -> Value:
        """What the last op computes."""
        return self.calls[-1].outputs[0]

    @property
    def shape(self) -> Shape:
        """Of the result."""
        return self.steps[-1].tensor.shape

    @property
    def dtype(self) -> str:
        """Of the result."""
        return self.value.dtype

    def __call__(self, *index: PrimExpr) -> PrimExpr:
        """The element at an index."""
        fresh: dict[Any, Any] = {s.var: tir.Var(s.var.name, dtype_of(s.var)) for s in self.steps}
        *before, result = [_element(step.tensor, index, fresh) for step in self.steps]
        for step, expr in reversed(list(zip(self.steps, before, strict=False))):
            result = _bound(fresh[step.var], expr, result)
        return result

    def stage(self) -> Tensor:
        """A stage of its own, for a compute that reads an element often."""
        if self.staged is None:
            self.staged = te.compute(self.shape, self, name=self.calls[-1].name)
        return self.staged


def absorbed(owner: str, calls: Sequence[OpCall], known: Mapping[Value, Tensor]) -> Absorbed:
    """Elementwise ops as one tensor; `known`: what they read besides one another."""
    bound: dict[Value, _Bound] = {}
    steps: dict[OpCall, _Step] = {}
    for call in calls:
        ins = [bound[v] if v in bound else known[v] for v in call.inputs]
        made: Any = compute_of(call.kind)(ins, call)
        tensors = list(made) if isinstance(made, (list, tuple)) else [made]
        check_types(owner, tensors[:1], call.outputs[:1])
        value = call.outputs[0]
        steps[call] = _Step(tir.Var(call.name, value.dtype), tensors[0])
        bound[value] = _Bound(steps[call].var, tuple(tensors[0].shape), value.dtype)
    return Absorbed(steps)


def applied(
    call: OpView, value: PrimExpr, index: Sequence[PrimExpr], others: Mapping[int, Tensor]
) -> PrimExpr:
    """An element of an elementwise op that reads `value` there; `others` are its further inputs by
    their positions.
    """
    shape = call.outputs[0].shape
    place = next(i for i in range(len(call.inputs)) if i not in others)
    ins: list[Any] = [others.get(i) for i in range(len(call.inputs))]
    ins[place] = _Bound(value, shape, dtype_of(value))
    made: Any = compute_of(call.kind)(ins, cast("Any", call))  # of an OpCall it reads as much
    return _element(made, index, {})


def number(value: Value) -> _Bound:
    """A constant of one element as an operand."""
    return _Bound(tir.const(value.scalar, value.dtype), value.shape, value.dtype)


def staged(x: Tensor | Absorbed) -> Tensor:
    """A tensor; what joined a kernel as a stage of its own."""
    return x.stage() if hasattr(x, "stage") else x


def with_result(
    owner: str, core: tuple[Value, Tensor], calls: Sequence[OpCall], known: Mapping[Value, Tensor]
) -> tuple[Absorbed, Tensor]:
    """The ops after a kernel's result, and the tensor that all of them end in: in place of the
    stage that wrote the result, or, where that is a sum, after it.
    """
    value, tensor = core
    written = _Written(value, tensor)
    chain = absorbed(owner, calls, {**known, value: written.read()})
    made = te.compute(chain.shape, lambda *i: written.around(i, chain(*i)), name=calls[-1].name)
    return chain, made


class _Written:
    """The result of a kernel as what the ops after it read."""

    def __init__(self, value: Value, tensor: Tensor) -> None:
        self.value, self.tensor = value, tensor
        self.var = tir.Var(f"{value.name or 'result'}_", value.dtype)

    def read(self) -> _Bound:
        """It as an operand of the ops."""
        return _Bound(self.var, tuple(self.tensor.shape), self.value.dtype)

    def around(self, index: Sequence[PrimExpr], expr: PrimExpr) -> PrimExpr:
        """The expression with an element of the result bound."""
        element = self.tensor(*index)
        if inlines(self.tensor):
            element = _element(self.tensor, index, {})
        return _bound(self.var, element, expr)


def _bound(var: PrimExpr, value: PrimExpr, expr: PrimExpr) -> PrimExpr:
    """An expression of a value that it names. No vector of conditions can be named in 0.27, nor an
    integer: TVM simplifies the copies of an unrolled loop, and refuses two values of one name.
    """
    if dtype_of(var).startswith("float"):
        return tir.Let(var, value, expr)
    return substitute(expr, {var: value})


def inlines(tensor: Tensor) -> bool:
    """Whether a stage is one expression, not a sum or a maximum of many."""
    is_computed = isinstance(tensor.op, te.ComputeOp) and len(tensor.op.body) == 1
    return is_computed and not isinstance(tensor.op.body[0], tir.Reduce)


def _element(
    tensor: Tensor, index: Sequence[PrimExpr], fresh: Mapping[PrimExpr, PrimExpr]
) -> PrimExpr:
    axes = {axis.var: i for axis, i in zip(tensor.op.axis, index, strict=True)}
    return substitute(tensor.op.body[0], {**axes, **fresh})


@dataclass(frozen=True, eq=False)
class Widened:
    """A packed weight of halves as floats: each element that is read is made one, in no stage."""

    halves: Tensor
    dtype: str = "float32"

    @property
    def shape(self) -> Shape:
        """As it is packed."""
        return self.halves.shape

    def __call__(self, *index: PrimExpr) -> PrimExpr:
        """An element."""
        return self.halves(*index).astype(self.dtype)

    def stage(self, name: str) -> Tensor:
        """Floats in a stage of their own, for what reads an element often."""
        return te.compute(self.shape, self, name=name)
