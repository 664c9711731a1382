"""Relax: the calls of external functions as the ops that they do, in main again."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tvm import relax

from ...codegen.attributes import PACKED
from ...codegen.external import read_attrs
from ...graph import type_text
from ...ir.relax import Constant
from ...simplify.relax.inline import inlined, is_op
from ...tvm import constant_numpy, tvm
from ...tvm.types import BlockBuilder, Expr, Target, Type
from ..original_weights import Unpack
from . import without_item_calls
from .items import ItemsOfTuples


def unfused(
    mod: tvm.IRModule, names: Collection[str], unpack: Unpack, apart_for: Target | None
) -> tvm.IRModule:
    """The module without these external functions. `apart_for` is not None: each op is a primitive
    function of its own, which FuseOps leaves alone.
    """
    kept = {v: f for v, f in mod.functions.items() if v.name_hint not in names}
    builder = relax.BlockBuilder(tvm.IRModule(kept))
    main = inlined(
        mod,
        names,
        lambda func, args: _unpacked(func, args, unpack),
        None if apart_for is None else lambda call, over: _alone(builder, call, over),
    )
    done = builder.get()
    done.update_func(done.get_global_var("main"), main)
    done = without_item_calls(done)
    main = ItemsOfTuples(done).visit_expr(done["main"])  # of several results of one function
    done.update_func(done.get_global_var("main"), main)
    done = relax.transform.CanonicalizeBindings()(done)
    done = relax.transform.DeadCodeElimination()(done)
    for name, value in (mod.attrs or {}).items():
        done = done.with_attr(name, value)
    return done


def _unpacked(func: relax.Function, args: Sequence[Expr], unpack: Unpack) -> dict[Expr, Expr]:
    """In place of the stand-ins (partition/finish.py) of an external function the weights as
    they were.
    """
    packed = {int(i) for i in read_attrs(func.attrs).get(PACKED, {})}
    standing: dict[Expr, int] = {p: i for i, p in enumerate(func.params) if i in packed}
    last: dict[int, relax.Var] = {}
    for binding in (b for block in func.body.blocks for b in block.bindings):
        value = binding.value
        if is_op(value) and value.args[0] in standing:
            position = standing[binding.var] = standing[value.args[0]]
            last[position] = binding.var
    found = {}
    for position, var in last.items():
        passed = args[position]
        array = constant_numpy(passed) if isinstance(passed, Constant) else None
        type_ = type_text([int(e) for e in var.ty.shape.values], str(var.ty.dtype))
        found[position] = unpack(str(func.attrs["global_symbol"]), array, type_)
    return {var: found[i] for var, i in standing.items()}


def _alone(module: BlockBuilder, call: relax.Call, over: Type) -> relax.Call:
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
