"""Relay: copies that raise an InputError where something does not hold, as external functions of
ours: no op is registered. What nothing reads would be left out, so that a check is a copy of what
is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm import relay, te, tir

from ...codegen.relay import CHECK
from ...ir.relay.walk import postorder, rebuild
from ...tvm import tvm
from ...tvm.symbolic import INPUT_ERROR
from ...tvm.types import Buffer, Expr, PrimExpr, PrimFunc, Stmt, Type

# (elements of the value, sizes of the data) -> what has to hold
Holds = Callable[[Callable[[int], Any], Sequence[Any]], Any]


class Checks:
    """A module, its main with each expression as `change` makes it, and the checks of that."""

    def __init__(self, mod: tvm.IRModule) -> None:
        self._mod = mod
        self._functions: dict[Any, Any] = {}

    def rebuilt(self, change: Callable[[Expr, Expr, Mapping[Expr, Expr]], Expr]) -> tvm.IRModule:
        """`change` makes an expression of what it was, of what it is over new inputs, and of what
        became of each expression.
        """
        main, new = self._mod["main"], dict[Any, Any]()
        for expr in postorder(main.body):
            new[expr] = change(expr, rebuild(expr, new), new)
        functions = dict(self._mod.functions.items())
        done = tvm.IRModule(functions | self._functions, attrs=self._mod.attrs)
        ret = main.ret_type
        done["main"] = relay.Function(
            main.params, new[main.body], ret, main.type_params, main.attrs
        )
        return relay.transform.InferType()(done)

    def copy(self, value: Expr, ty: Type, data: Expr, rank: int, holds: Holds, text: str) -> Expr:
        """A value of this type behind a check of the sizes of `data`, of so many axes."""
        var = relay.GlobalVar(self._name())
        self._functions[var] = _function(var.name_hint, ty, rank, _kernel(ty, rank, holds, text))
        return relay.Call(var, [value, relay.shape_of(data, "int64")])

    def _name(self) -> str:
        taken = {var.name_hint for var in self._mod.functions}
        count = len(self._functions)
        name = f"tefuse_check_{count}"
        while name in taken:
            count += 1
            name = f"tefuse_check_{count}"
        return name


def _kernel(ty: Type, rank: int, holds: Holds, text: str) -> PrimFunc:
    """The copy, as a PrimFunc."""
    sizes = te.placeholder((rank,), "int64", "sizes")
    shape = [te.var(f"d{n}", "int64") if isinstance(e, tir.Any) else e for n, e in _extents(ty)]
    value = te.placeholder(shape, ty.dtype, "value")

    def body(given: Sequence[Buffer], results: Sequence[Buffer]) -> Stmt:
        builder = tir.ir_builder.create()
        condition = holds(
            lambda n: given[0].vload([n]).astype("int64"),
            [given[1].vload([n]) for n in range(rank)],
        )
        message = tir.StringImm(f"{INPUT_ERROR}{text}")
        builder.emit(lambda rest: tir.AssertStmt(condition, message, rest))
        source, target = builder.buffer_ptr(given[0]), builder.buffer_ptr(results[0])
        count = tir.const(1, "int64")
        for extent in shape:
            count = count * extent
        with builder.for_range(0, count, "at", dtype="int64") as at:
            target[at] = source[at]
        return builder.get()

    done = te.extern([shape], [value, sizes], body, name="checked", dtype=ty.dtype)
    return te.create_prim_func([value, sizes, done])


def _extents(ty: Type) -> list[tuple[int, PrimExpr]]:
    return list(enumerate(ty.shape))


def _function(name: str, ty: Type, rank: int, kernel: PrimFunc) -> relay.Function:
    """The external function. Its body reads both, and its result is as large as the value: that
    alone is asked of it.
    """
    value = relay.var("value", ty)
    sizes = relay.var("sizes", relay.TensorType((rank,), "int64"))
    func = relay.Function([value, sizes], relay.cast(relay.cast_like(value, sizes), ty.dtype), ty)
    one = tir.IntImm("int32", 1)
    attrs = {"Compiler": "tefuse", "global_symbol": name, "Primitive": one, "Inline": one}
    for key, attr in (attrs | {CHECK: kernel}).items():
        func = func.with_attr(key, attr)
    return func
