"""ONNX's Loop as functions of Relax: the body, which is partitioned as main is, and what calls it.

Relax has no loops. A function that called itself for each step would be as deep as there are steps,
on the stack of whoever calls. Here one of `level` n takes up to 2^n steps, as two of level n - 1,
and ends as soon as the condition does; what each step yields is joined on the way back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import relax

from ...errors import InputError
from ...ir.relax import Constant
from ...simplify.relax.exprs import STEP
from ...tvm import constant_numpy, tir, tvm
from ...tvm.rewrite import substitute
from ...tvm.types import Attrs, BlockBuilder, Expr, Function, PrimVar
from ..onnx.bodies import Given, as_model, free_names
from ..onnx.graph import where
from ..onnx.loops import passes_on
from .algebra import Algebra, Extent, variables
from .loop_calls import Functions, Signature, extents, repeated, started

if TYPE_CHECKING:
    import onnx

_MOST = 2**63 - 1  # steps of a loop that only its condition ends
_DEEPEST = 40  # level: 2^40 steps of 10 us are four months; each level takes 5 KB of stack
_TRIES = 4  # an axis that grows may make another one grow


@dataclass(frozen=True)
class Scope:
    """Where a Loop stands: the values around it by name, how to import a body as a module, and the
    functions of loops so far, which the whole module gets in the end.
    """

    builder: BlockBuilder
    algebra: Algebra
    values: Mapping[str, Any]
    opsets: Sequence[Any]
    imported: Callable[[Any], Any]
    functions: Functions


def loop_of(scope: Scope, inputs: Sequence[Expr], attributes: Attrs, known: Extent | None) -> Expr:
    """The results of a Loop. `known`: what is known of the most steps that it may take."""
    body, place = attributes["body"], where("Loop", attributes["tvm_custom"]["name"])
    count, condition, *states = [_tensor(scope, x, place) for x in inputs]
    around = {n: scope.values[n] for n in free_names(body) if n in scope.values}
    constants = {n: constant_numpy(x) for n, x in around.items() if isinstance(x, Constant)}
    data = {n: _tensor(scope, x, place) for n, x in around.items() if n not in constants}
    step, grown = _step(scope, body, [*states, *data.values()], list(data), constants, place)
    signature = Signature(scope.functions.add("step", step), step, len(states))
    most = _most(count, known)
    is_endless = passes_on(body) and (condition is None or _is_true(condition))
    limit = relax.const(_MOST, "int64") if count is None else _scalar(scope, count)
    arguments = [
        _level(scope, limit),
        relax.const(0, "int64"),
        limit,
        relax.const(True, "bool") if condition is None else _scalar(scope, condition),
        *states,
        *data.values(),
    ]
    loop = repeated(scope.functions, signature)
    if not (is_endless and isinstance(most, int) and most > 0):
        loop = scope.functions.add("loop", started(loop, signature))
    result = scope.builder.emit(relax.Call(loop, arguments))
    length = scope.algebra.most(most, 0) if is_endless and most is not None else None
    return _cast(scope, result, signature, [*states, *data.values()], grown, length)


def _tensor(scope: Scope, x: Expr | None, place: str) -> Expr | None:
    """A value as a tensor, whose number of axes is known."""
    if x is None:
        return None
    if isinstance(x.ty, relax.ShapeType):
        return scope.builder.emit(relax.op.shape_to_tensor(x))
    if not isinstance(x.ty, relax.TensorType) or x.ty.ndim < 0:
        text = "expected tensors of a known number of axes for what its steps read"
        raise InputError(f"{place}: {text}, found {x.ty}")
    return x


def _scalar(scope: Scope, x: Expr) -> Expr:
    if x.ty.ndim == 0:
        return x
    return scope.builder.emit(relax.op.reshape(x, relax.ShapeExpr([])))


def _is_true(x: Expr) -> bool:
    return isinstance(x, Constant) and bool(constant_numpy(x).all())


def _most(count: Expr, known: Extent | None) -> Extent | None:
    """How many steps there are at most, where that is a number or follows from sizes."""
    if isinstance(count, Constant):
        return int(constant_numpy(count).reshape(-1)[0])
    return int(known) if isinstance(known, np.integer) else known


def _level(scope: Scope, limit: Expr) -> Expr:
    """The least n of which 2^n is no less than so many steps: how many powers of 2 are below it."""
    powers = 2 ** np.arange(_DEEPEST, dtype=np.int64)
    if isinstance(limit, Constant):
        return relax.const(int((powers < constant_numpy(limit)).sum()), "int64")
    below = scope.builder.emit(relax.op.less(relax.const(powers), limit))
    return scope.builder.emit(relax.op.sum(relax.op.astype(below, "int64")))


def _step(
    scope: Scope,
    body: onnx.GraphProto,
    tensors: Sequence[Expr],
    names: Sequence[str],
    constants: Mapping[str, np.ndarray],
    place: str,
) -> tuple[Function, set[tuple[int, int]]]:
    """The body as a function of the number of the step, the condition, and these tensors, of which
    the last have these names; and which axes of which states each step may make longer.
    """
    states = len(tensors) - len(names)
    called = [*(value.name for value in body.input), *names]
    types = [("int64", _one(body.input[0])), ("bool", _one(body.input[1]))]
    sizes = [[_size(e) for e in extents(x.ty)] for x in tensors]
    grown: set[tuple[int, int]] = set()
    for _ in range(_TRIES):
        for n, axis in grown:
            sizes[n][axis] = f"state_{n}_{axis}"
        every = [
            *types,
            *((str(x.ty.dtype), tuple(s)) for x, s in zip(tensors, sizes, strict=True)),
        ]
        given = [Given(name, *each) for name, each in zip(called, every, strict=True)]
        mod = scope.imported(as_model(body, given, constants, scope.opsets))
        told = [_told_sizes(value) for value in body.output[1 : 1 + states]]
        more = _grown(scope, mod["main"], told, place) - grown
        if not more:
            return _as_step(mod["main"]), grown
        grown |= more
    raise InputError(f"{place}: the sizes of its states do not settle; found {sorted(grown)}")


def _one(value: onnx.ValueInfoProto) -> tuple[int, ...]:
    """The shape of a body's input of one element, as it has it: of no axes, or of one."""
    return (1,) * len(value.type.tensor_type.shape.dim)


def _size(extent: Extent) -> int | str:
    """A name for an open size: that of a variable, or of nothing else."""
    if isinstance(extent, tir.Var):
        return str(extent.name)
    return "" if isinstance(extent, tvm.ir.Node) else int(extent)


def _told_sizes(value: onnx.ValueInfoProto) -> list[int | None]:
    """The sizes of a state as the body declares them, which the virtual machine looks at."""
    return [
        d.dim_value if d.HasField("dim_value") else None for d in value.type.tensor_type.shape.dim
    ]


def _grown(
    scope: Scope, func: Function, told: Sequence[Sequence[int | None]], place: str
) -> set[tuple[int, int]]:
    """The axes of states that a step leaves with another size than it found. `told` is of use where
    data decide that size.
    """
    before = [param.ty for param in func.params[2 : 2 + len(told)]]
    after = list(func.ret_ty.fields)[1 : 1 + len(told)]
    found: set[tuple[int, int]] = set()
    for n, (was, now) in enumerate(zip(before, after, strict=True)):
        if (str(was.dtype), was.ndim) != (str(now.dtype), now.ndim):
            text = f"expected its state {n} after a step as it is before: {was}"
            raise InputError(f"{place}: {text}, found {now}")
        declared = [*told[n], *[None] * (was.ndim - len(told[n]))]
        for axis, (old, new) in enumerate(zip(extents(was), extents(now), strict=True)):
            size = declared[axis] if new is None else new
            if size is None or not scope.algebra.are_equal(old, size):
                found.add((n, axis))
    return found


def _as_step(main: Function) -> Function:
    """The main of a body's module as a function that no caller sees."""
    func = relax.Function(main.params, main.body, main.ret_ty, main.is_pure)
    return func.with_attr(STEP, True)


def _cast(
    scope: Scope,
    result: Expr,
    signature: Signature,
    given: Sequence[Expr],
    grown: set[tuple[int, int]],
    length: Extent | None,
) -> Expr:
    """The results, of sizes that are known, and new symbols for the others."""
    sizes: dict[Any, Extent] = {}
    for param, x in zip(signature.step.params[2:], given, strict=True):
        sizes |= {
            p: e
            for p, e in zip(extents(param.ty), extents(x.ty), strict=True)
            if isinstance(p, tir.Var)
        }
    done = []
    for n, ty in enumerate(signature.results):
        is_state = n < signature.states
        like = given[n].ty if is_state else ty
        found: list[Any] = extents(like)
        if is_state:
            found = [None if (n, axis) in grown else e for axis, e in enumerate(found)]
        else:
            found = [length, *(_outside(e, sizes) for e in found)]
        shape = [tir.Var(f"loop_{n}_{a}", "int64") if e is None else e for a, e in enumerate(found)]
        item = scope.builder.emit(relax.TupleGetItem(result, n + 2))
        done.append(scope.builder.match_cast(item, relax.TensorType(shape, str(ty.dtype))))
    return relax.Tuple(done) if len(done) > 1 else done[0]


def _outside(extent: Extent, sizes: Mapping[PrimVar, Extent]) -> Extent | None:
    """A size within a step as one around it; None for what only the step knows."""
    if extent is None or isinstance(extent, int):
        return extent
    is_known = all(var in sizes for var in variables(extent))
    return substitute(extent, dict(sizes)) if is_known else None
