"""Relay: functions with extents of `Any`, read at numbers for them.

`Any` has no name. Which of a function's are equal, its types say: at numbers that differ, type
inference refuses what has to be one size (or 1, which is then refused when it runs). What the
types say of every other expression, they say at those numbers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tvm import relay
from tvm.ir.diagnostics import override_renderer

from ...tvm import tvm
from ...tvm.types import Expr, Function, IRModule, PrimExpr, Type
from ..symbols import usual_sizes
from .walk import children, postorder

# Attribute of a function, as JSON: [parameter, axis, name] of each extent that is a symbol.
SYMBOLS = "tefuse.symbols"
Place = tuple[int, int]  # parameter and axis
Names = dict[Place, str]


@dataclass(frozen=True)
class Instance:
    """A function at some sizes: typed, with all that it calls written out; and what became of each
    expression.
    """

    func: Function
    typed: Mapping[Expr, Expr]

    def type_of(self, expr: Expr) -> Type:
        """The type of an expression of the function as it was."""
        found = self.typed.get(expr)
        return expr.checked_type if found is None else found.checked_type


def names_of(func: Function) -> Names:
    """The symbols of a function that was given them, by their places."""
    if not func.attrs or SYMBOLS not in func.attrs.keys():  # noqa: SIM118 (no Python dict)
        return {}
    return {(param, axis): name for param, axis, name in json.loads(str(func.attrs[SYMBOLS]))}


def with_names(func: Function, names: Names) -> Function:
    """The function with this for its symbols."""
    return func.with_attr(SYMBOLS, json.dumps([[*at, name] for at, name in names.items()]))


def sizes_for(func: Function, names: Names, skip: int = 0) -> dict[str, int]:
    """A size for each symbol that no known extent of the function has; another with `skip`."""
    if not names:  # of a whole network the extents alone take a tenth of a second
        return {}
    known = {int(e) for e in _extents(func) if isinstance(e, tvm.tir.IntImm)}
    symbols = list(dict.fromkeys(names.values()))
    return dict(usual_sizes(symbols[skip:] + symbols[:skip], known))


def _extents(func: Function) -> Iterator[PrimExpr]:
    for expr in (*func.params, *postorder(func.body)):
        ty = expr.checked_type
        for field in ty.fields if isinstance(ty, relay.TupleType) else [ty]:
            yield from getattr(field, "shape", ())


def instance(
    func: Function, names: Names, sizes: Mapping[str, int], mod: IRModule | None = None
) -> Instance | None:
    """The function at these sizes; None where its types do not fit them."""
    params = [_param(p, n, names, sizes) for n, p in enumerate(func.params)]
    new = dict(zip(func.params, params, strict=True))
    body = _written_out(func.body, new, mod)
    with _silence():
        try:
            made = tvm.IRModule.from_expr(relay.Function(params, body))
            typed = relay.transform.InferType()(made)["main"]
        except tvm.TVMError:  # an InternalError of an op, or a DiagnosticError
            return None
    pairs = zip(postorder(body), postorder(typed.body), strict=True)
    now = dict(pairs) | dict(zip(params, typed.params, strict=True))
    return Instance(typed, {old: now[expr] for old, expr in new.items() if expr in now})


def _param(param: Expr, position: int, names: Names, sizes: Mapping[str, int]) -> Expr:
    ty = param.checked_type
    if not isinstance(ty, relay.TensorType):
        return relay.Var(param.name_hint, ty)
    shape = [
        sizes[names[position, axis]] if (position, axis) in names else extent
        for axis, extent in enumerate(ty.shape)
    ]
    return relay.Var(param.name_hint, relay.TensorType(shape, ty.dtype))


def _written_out(body: Expr, new: dict[Expr, Expr], mod: IRModule) -> Expr:
    """A body over new parameters, without the types of calls, and with the functions that it calls
    written out; `new` gets what became of each of its expressions.
    """
    for expr in postorder(body, new):
        callee = getattr(expr, "op", None)
        if isinstance(callee, relay.GlobalVar) and mod is not None:
            callee = mod[callee]
        if isinstance(expr, relay.Call) and isinstance(callee, relay.Function):
            inner = dict(zip(callee.params, (new[a] for a in expr.args), strict=True))
            new[expr] = _written_out(callee.body, inner, mod)
        else:
            new[expr] = _over(expr, new)
    return new[body]


def _over(expr: Expr, new: Mapping[Expr, Expr]) -> Expr:
    if isinstance(expr, relay.Call):
        return relay.Call(expr.op, [new[arg] for arg in expr.args], expr.attrs)
    if isinstance(expr, relay.Tuple):
        return relay.Tuple([new[field] for field in expr.fields])
    if isinstance(expr, relay.TupleGetItem):
        return relay.TupleGetItem(new[expr.tuple_value], expr.index)
    if isinstance(expr, relay.If):
        return relay.If(*(new[child] for child in children(expr)))
    return expr


@contextmanager
def _silence() -> Iterator[None]:
    """TVM writes what it finds wrong to the standard error, also where one asks only whether."""
    override_renderer(lambda _: None)
    try:
        yield
    finally:
        override_renderer(None)


def places(func: Function) -> list[Place]:
    """The extents of a typed function's parameters that are `Any`."""
    return [
        (position, axis)
        for position, param in enumerate(func.params)
        for axis, extent in enumerate(getattr(param.checked_type, "shape", ()))
        if isinstance(extent, tvm.tir.Any)
    ]


def named(func: Function, mod: IRModule | None = None) -> Names:
    """Names for the extents of a typed function's parameters that are `Any`: the same for those
    that its types want to be equal, as few equal as can be; none where no numbers fit. Those that
    it was told stay.
    """
    told = names_of(func)
    alone = {at: f"{func.params[at[0]].name_hint}_{at[1]}" for at in places(func) if at not in told}
    for names in _groupings(alone):
        if _fits(func, {**names, **told}, mod):
            return {**_split(func, names, alone, told, mod), **told}
    return {}


def _groupings(alone: Names) -> Iterator[Names]:
    """Which extents may be equal: none; the batches; those and the others; all."""
    batches = [at for at in alone if at[1] == 0]
    others = [at for at in alone if at[1] > 0]
    yield alone
    yield {**alone, **_equal(batches, alone)}
    yield {**alone, **_equal(others, alone)}
    yield {**_equal(batches, alone), **_equal(others, alone)}
    yield _equal(list(alone), alone)


def _equal(places: Sequence[Place], alone: Names) -> Names:
    return {at: alone[places[0]] for at in places}


def _split(func: Function, names: Names, alone: Names, told: Names, mod: IRModule) -> Names:
    """The same with names of their own for extents that need not be equal to others."""
    for at, name in alone.items():
        shared = [other for other, known in names.items() if known == names[at]]
        if len(shared) > 1:
            first = next(other for other in shared if other != at)
            rest = {other: alone[first] for other in shared if other != at}
            split = {**names, **rest, at: name}
            names = split if _fits(func, {**split, **told}, mod) else names
    return names


def _fits(func: Function, names: Names, mod: IRModule) -> bool:
    return instance(func, names, sizes_for(func, names), mod) is not None


def calls_named(main: Function, mod: IRModule) -> dict[str, Names]:
    """Of each function that `main` calls: names for the extents of its parameters that are not
    known: those of main's symbols that they are, at two numbers for each.
    """
    names = names_of(main)
    if not names:
        return {}
    taken = [sizes_for(main, names, skip) for skip in (0, 1)]
    made = [instance(main, names, sizes, mod) for sizes in taken]
    if None in made:
        return {}
    of_main = {tuple(sizes[name] for sizes in taken): name for name in names.values()}
    found: dict[str, Names] = {}
    for expr in postorder(main.body):
        if isinstance(expr, relay.Call) and isinstance(expr.op, relay.GlobalVar):
            types = [[m.type_of(arg) for arg in expr.args] for m in made if m is not None]
            found[expr.op.name_hint] = _of_call(types, mod[expr.op], dict(of_main))
    return found


def _of_call(types: Sequence[Sequence[Type]], func: Function, known: dict[Any, str]) -> Names:
    """The names of one function's extents; those that are no symbol of main's have new ones."""
    found: Names = {}
    for position, param in enumerate(func.params):
        for axis, extent in enumerate(getattr(param.checked_type, "shape", ())):
            if isinstance(extent, tvm.tir.Any):
                sizes = tuple(_number(of[position].shape[axis]) for of in types)
                name = known.setdefault(sizes, f"{param.name_hint}_{axis}")
                found[position, axis] = name
    return found


def _number(extent: PrimExpr) -> int | None:
    return int(extent) if isinstance(extent, tvm.tir.IntImm) else None
