"""Relax: the calls of external functions as the ops that they do, in main again."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from tvm import relax

from .._tvm import constant_numpy, tvm
from ..codegen.lower import PACKED, read_attrs
from ..ir._relax import ITEM, Constant
from ..ir.graph import type_text
from ._relax import without_item_calls
from .originals import Unpack

Expr = Any  # relax.Expr: TVM ships no types


def unfused(
    mod: tvm.IRModule, names: Collection[str], unpack: Unpack, apart_for: Any | None
) -> tvm.IRModule:
    """The module without these external functions. `apart_for` is not None: each op is a primitive
    function of its own, which FuseOps leaves alone.
    """
    kept = {v: f for v, f in mod.functions.items() if v.name_hint not in names}
    builder = relax.BlockBuilder(tvm.IRModule(kept))
    apart = None if apart_for is None else builder
    main = _Inlined(mod, names, unpack, apart).visit_expr(mod["main"])
    done = builder.get()
    done.update_func(done.get_global_var("main"), main)
    done = relax.transform.DeadCodeElimination()(without_item_calls(done))  # tuples of results
    for name, value in (mod.attrs or {}).items():
        done = done.with_attr(name, value)
    return done


@relax.expr_functor.mutator
class _Inlined(relax.PyExprMutator):
    """main with the ops of some functions in place of the calls of these."""

    def __init__(
        self, mod: tvm.IRModule, names: Collection[str], unpack: Unpack, apart: Any | None
    ) -> None:
        super().__init__()
        self.mod, self.names, self.unpack, self.apart = mod, names, unpack, apart

    def visit_call_(self, call: relax.Call) -> Expr:
        call = super().visit_call_(call)
        if getattr(call.op, "name_hint", None) not in self.names:
            return call
        func = self.mod[call.op.name_hint]
        new = dict(zip(func.params, call.args, strict=True)) | self._unpacked(func, call.args)
        return _Copy(self.builder_, new, self.apart).of(func.body)

    def _unpacked(self, func: relax.Function, args: Sequence[Expr]) -> dict[Expr, Expr]:
        """In place of the stand-ins (partition/finish.py) of an external function the weights as
        they were.
        """
        packed = {int(i) for i in read_attrs(func.attrs).get(PACKED, {})}
        standing: dict[Expr, int] = {p: i for i, p in enumerate(func.params) if i in packed}
        last: dict[int, relax.Var] = {}
        for binding in (b for block in func.body.blocks for b in block.bindings):
            value = binding.value
            if _is_op(value) and value.args[0] in standing:
                position = standing[binding.var] = standing[value.args[0]]
                last[position] = binding.var
        found = {}
        for position, var in last.items():
            passed = args[position]
            array = constant_numpy(passed) if isinstance(passed, Constant) else None
            type_ = type_text([int(e) for e in var.ty.shape.values], str(var.ty.dtype))
            found[position] = self.unpack(str(func.attrs["global_symbol"]), array, type_)
        return {var: found[i] for var, i in standing.items()}


def _is_op(value: Expr) -> bool:
    return isinstance(value, relax.Call) and isinstance(value.op, tvm.ir.Op)


class _Copy:
    """The bindings of a function, and of those inside it, emitted into another one."""

    def __init__(self, builder: Any, new: dict[Expr, Expr], apart: Any | None) -> None:
        self.builder, self.new, self.apart = builder, new, apart
        self.given = frozenset(new)
        self.inside: dict[Expr, relax.Function] = {}

    def of(self, body: relax.SeqExpr) -> Expr:
        """Emit all of it; -> what stands for its result."""
        for block in body.blocks:
            for binding in block.bindings:
                if binding.var not in self.given:
                    self._bind(binding.var, binding.value)
        return self._over(body.body)

    def _bind(self, var: relax.Var, value: Expr) -> None:
        if isinstance(value, relax.Function):
            self.inside[var] = value
        elif isinstance(value, relax.Call) and value.op in self.inside:
            inner = self.inside[value.op]
            self.new.update(zip(inner.params, map(self._over, value.args), strict=True))
            self.new[var] = self.of(inner.body)
        elif self.apart is not None and _is_op(value) and value.op.name != f"relax.{ITEM}":
            self.new[var] = self.builder.emit(_alone(self.apart, value, self._over))
        else:
            over = self._over(value)
            self.new[var] = self.builder.emit(over) if isinstance(over, relax.Call) else over

    def _over(self, expr: Expr) -> Expr:
        """An expression over the new variables."""
        if isinstance(expr, relax.Var):
            return self.new[expr]
        if isinstance(expr, relax.Tuple):
            return relax.Tuple([self._over(field) for field in expr.fields])
        if isinstance(expr, relax.TupleGetItem):
            whole = self._over(expr.tuple_value)
            is_written = isinstance(whole, relax.Tuple)
            return whole.fields[expr.index] if is_written else relax.TupleGetItem(whole, expr.index)
        if isinstance(expr, relax.Call):
            args = [self._over(arg) for arg in expr.args]
            return relax.Call(expr.op, args, expr.attrs, expr.ty_args)
        return expr


def _alone(module: Any, call: relax.Call, over: Any) -> relax.Call:
    """The call of a new primitive function that does this one op."""
    params: dict[Expr, relax.Var] = {}

    def inside(arg: Expr) -> Expr:
        if isinstance(arg, relax.Tuple):
            return relax.Tuple([inside(field) for field in arg.fields])
        is_scalar = isinstance(arg, Constant) and arg.ty.ndim == 0
        if not isinstance(arg, (relax.Var, Constant)) or is_scalar:
            return arg
        if arg not in params:
            params[arg] = relax.Var(f"p{len(params)}", arg.ty)
        return params[arg]

    args = [inside(arg) for arg in call.args]
    name = call.op.name.split(".")[-1]
    builder = relax.BlockBuilder()
    with builder.function(name, list(params.values()), attrs={"Primitive": True}):
        with builder.dataflow():
            result = builder.emit_output(relax.Call(call.op, args, call.attrs, call.ty_args))
        builder.emit_func_output(result)
    func = builder.get()[name].without_attr("global_symbol")
    return relax.Call(module.add_func(func, name), [over(arg) for arg in params])
