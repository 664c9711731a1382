"""Relay: a place of the largest among none, and a TopK of more than there are, where extents are
`Any`. TVM 0.17 says -1, and leaves the places of those that are missing as their memory was.

What comes out goes through a check, which raises; in a branch only where that is taken.
It is a copy, for what nothing reads would be left out; and not of what goes in, for the virtual
machine calls no kernel whose results have no elements.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tvm import relay, tir

from ...ir.relay.any import Instance, instance, names_of, sizes_for
from ...ir.relay.walk import postorder
from ...tvm import tvm
from ...tvm.types import Expr, Type
from ..empty_tensors import axes_of
from .checks import Checks


def with_places_checked(mod: tvm.IRModule) -> tvm.IRModule:
    """The module, its main with these checks, if it asks for any."""
    main = mod["main"]
    if not any(any(_asked(expr)) for expr in postorder(main.body)):
        return mod
    names = names_of(main)
    taken = [sizes_for(main, names, skip) for skip in (0, 1)]
    made = [instance(main, names, sizes, mod) for sizes in taken] if names else []
    checks = Checks(mod)
    symbols = {tuple(sizes[name] for sizes in taken): name for name in names.values()}

    def checked(expr: Expr, made_of: Expr, new: Mapping[Expr, Expr]) -> Expr:
        for axis, least in _asked(expr):
            size = _size(expr.args[0], axis, made)
            known = f"size {symbols[size]}" if size in symbols else f"axis {axis} of {expr.op.name}"
            made_of = _checked(checks, made_of, new[expr.args[0]], expr, axis, least, known)
        return made_of

    return checks.rebuilt(checked)


def _asked(expr: Expr) -> Iterator[tuple[int, int]]:
    """Axes that are not known to be long enough, and how long they have to be."""
    name = getattr(getattr(expr, "op", None), "name", "")
    if name not in ("argmax", "argmin", "topk"):
        return
    shape = expr.args[0].checked_type.shape
    least = int(expr.attrs.k) if name == "topk" else 1
    for axis in axes_of(expr.attrs, len(shape)):
        if isinstance(shape[axis], tir.Any):
            yield axis, least


def _size(data: Expr, axis: int, made: Sequence[Instance | None]) -> tuple[int, ...]:
    """An extent at each of the sizes that were tried."""
    return tuple(int(each.type_of(data).shape[axis]) for each in made if each is not None)


def _checked(
    checks: Checks, result: Expr, data: Expr, was: Expr, axis: int, least: int, known: str
) -> Expr:
    """A result, or several, behind a check of this axis of the data."""
    text = f"{known}: expected {'1 or more' if least == 1 else f'at least {least}'}"
    rank = len(was.args[0].checked_type.shape)

    def one(x: Expr, ty: Type) -> Expr:
        return checks.copy(x, ty, data, rank, lambda _, sizes: sizes[axis] >= least, text)

    if not isinstance(was.checked_type, relay.TupleType):
        return one(result, was.checked_type)
    fields = enumerate(was.checked_type.fields)
    return relay.Tuple([one(relay.TupleGetItem(result, n), ty) for n, ty in fields])
