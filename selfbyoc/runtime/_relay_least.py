"""Relay: a place of the largest among none, and a TopK of more than there are, where extents are
`Any`. TVM 0.17 says -1, and leaves the places of those that are missing as their memory was.

What comes out goes through an op of this file, which raises; in a branch only where that is taken.
It is a copy, for what nothing reads would be left out; and not of what goes in, for the virtual
machine calls no kernel whose results have no elements.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from tvm import relay, te, tir, topi
from tvm.relay.op import op as registry
from tvm.relay.op._tensor import elemwise_shape_func

from .._tvm import tvm
from .._tvm_symbolic import INPUT_ERROR
from ..ir._relay_any import Instance, instance, names_of, sizes_for
from ..ir._relay_walk import postorder, rebuild

_NAME = "tefuse.at_least"


def with_checks(mod: tvm.IRModule) -> tvm.IRModule:
    """The module, its main with these checks, if it asks for any."""
    main = mod["main"]
    if not any(any(_asked(expr)) for expr in postorder(main.body)):
        return mod
    names = names_of(main)
    taken = [sizes_for(main, names, skip) for skip in (0, 1)]
    made = [instance(main, names, sizes, mod) for sizes in taken] if names else []
    symbols = {tuple(sizes[name] for sizes in taken): name for name in names.values()}
    new: dict[Any, Any] = {}
    for expr in postorder(main.body):
        new[expr] = rebuild(expr, new)
        for axis, least in _asked(expr):
            size = _size(expr.args[0], axis, made)
            known = f"size {symbols[size]}" if size in symbols else f"axis {axis} of {expr.op.name}"
            new[expr] = _checked(new[expr], new[expr.args[0]], expr, axis, least, known)
    done = tvm.IRModule(dict(mod.functions.items()), attrs=mod.attrs)
    ret = main.ret_type
    done["main"] = relay.Function(main.params, new[main.body], ret, main.type_params, main.attrs)
    return relay.transform.InferType()(done)


def _asked(expr: Any) -> Iterator[tuple[int, int]]:
    """Axes that are not known to be long enough, and how long they have to be."""
    name = getattr(getattr(expr, "op", None), "name", "")
    if name not in ("argmax", "argmin", "topk"):
        return
    shape = expr.args[0].checked_type.shape
    least = int(expr.attrs.k) if name == "topk" else 1
    for axis in _axes(expr.attrs, len(shape)):
        if isinstance(shape[axis], tir.Any):
            yield axis, least


def _axes(attrs: Any, rank: int) -> list[int]:
    given = attrs.axis
    if given is None:
        return list(range(rank))
    axes = [int(given)] if isinstance(given, (int, tir.IntImm)) else [int(a) for a in given]
    axes = [axis % rank for axis in axes]
    is_exclusive = bool(getattr(attrs, "exclude", False))
    return [axis for axis in range(rank) if axis not in axes] if is_exclusive else axes


def _size(data: Any, axis: int, made: Sequence[Instance | None]) -> tuple[Any, ...]:
    """An extent at each of the sizes that were tried."""
    return tuple(int(each.type_of(data).shape[axis]) for each in made if each is not None)


def _checked(result: Any, data: Any, was: Any, axis: int, least: int, known: str) -> Any:
    """A result, or several, behind a check of this axis of the data."""
    text = f"{INPUT_ERROR}{known}: expected {'1 or more' if least == 1 else f'at least {least}'}"
    attrs = tvm.ir.make_node("DictAttrs", axis=axis, least=least, text=text)

    def one(x: Any) -> Any:
        return relay.Call(tvm.ir.Op.get(_NAME), [x, data], attrs)

    if not isinstance(was.checked_type, relay.TupleType):
        return one(result)
    count = len(was.checked_type.fields)
    return relay.Tuple([one(relay.TupleGetItem(result, n)) for n in range(count)])


def _compute(attrs: Any, ins: Sequence[Any], _: Any) -> list[Any]:
    result, data = ins
    holds = _opaque(data.shape[int(attrs["axis"])]) >= int(attrs["least"])

    def copied(given: Sequence[Any], results: Sequence[Any]) -> Any:
        builder = tir.ir_builder.create()
        told = tir.StringImm(str(attrs["text"]))
        builder.emit(lambda body: tir.AssertStmt(holds, told, body))
        source, target = builder.buffer_ptr(given[0]), builder.buffer_ptr(results[0])
        with builder.for_range(0, math.prod(result.shape), "at") as at:
            target[at] = source[at]
        return builder.get()

    return [te.extern([result.shape], [result, data], copied, name="at_least", dtype=result.dtype)]


def _opaque(extent: Any) -> Any:
    """A size of which nothing is known: of its own variables TVM takes for granted that they are 1
    or more.
    """
    return tir.reinterpret(f"u{extent.dtype}", extent)


def _register() -> None:
    registry.register(_NAME, "a copy of what is large enough")
    op = tvm.ir.Op.get(_NAME)
    op.set_attrs_type_key("DictAttrs")
    op.set_support_level(10)
    op.add_type_rel(f"{_NAME}Rel", lambda types, attrs: types[0])
    registry.register_pattern(_NAME, registry.OpPattern.OPAQUE)
    registry.register_compute(_NAME, _compute)
    registry.register_schedule(_NAME, _schedule)
    registry.register_shape_func(_NAME, False, elemwise_shape_func)


@tvm.target.generic_func
def _schedule(attrs: Any, outs: Sequence[Any], target: Any) -> Any:
    return topi.generic.schedule_extern(outs)


_register()
