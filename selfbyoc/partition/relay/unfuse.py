"""Relay: the calls of external functions as the ops that they do, in main again."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tvm import relay

from ...codegen.attributes import PACKED
from ...codegen.external import read_attrs
from ...graph import type_text
from ...ir.relay.hollow import whole
from ...ir.relay.walk import postorder, rebuild
from ...simplify.relay.inline import inlined, item
from ...tvm import constant_numpy, tir, tvm
from ...tvm.types import Expr, Target
from ..original_weights import Unpack


def unfused(
    mod: tvm.IRModule, names: Collection[str], unpack: Unpack, apart_for: Target | None
) -> tvm.IRModule:
    """The module without these external functions. `apart_for` a target: each op is a primitive
    function of its own, which FuseOps leaves alone.
    """
    typed = relay.transform.InferType()(mod)
    main = typed["main"]
    new: dict[Expr, Expr] = {}
    for expr in postorder(main.body):
        new[expr] = item(rebuild(expr, new))
        if isinstance(expr, relay.Call) and getattr(expr.op, "name_hint", None) in names:
            func = whole(typed[expr.op.name_hint])
            composites = _Composites(func, new[expr].args, unpack)
            new[expr] = composites.ops(apart_for)
    whole_main = relay.Function(
        main.params, new[main.body], main.ret_type, main.type_params, main.attrs
    )
    kept = {v: f for v, f in typed.functions.items() if v.name_hint not in names}
    done = tvm.IRModule(kept, typed.type_definitions)
    done.update_func(done.get_global_var("main"), whole_main)
    done = relay.transform.InferType()(done)
    for name, value in (mod.attrs or {}).items():
        done = done.with_attr(name, value)
    return done


class _Composites:
    """One call of an external function: what its composites are given."""

    def __init__(self, func: relay.Function, args: Sequence[Expr], unpack: Unpack) -> None:
        self.func, self.args, self.unpack = func, list(args), unpack
        self.packed = {int(i) for i in read_attrs(func.attrs).get(PACKED, {})}

    def ops(self, apart_for: Target | None) -> Expr:
        """The function's result as ops of the caller."""
        new: dict[Expr, Expr] = dict(zip(self.func.params, self.args, strict=True))
        for expr in postorder(self.func.body, new):
            if isinstance(expr, relay.Call) and isinstance(expr.op, relay.Function):
                given = [self._given(arg, new) for arg in expr.args]
                is_apart = apart_for is not None
                new[expr] = (
                    _separate(expr.op, given, apart_for) if is_apart else inlined(expr.op, given)
                )
            else:
                new[expr] = item(rebuild(expr, new))
        return new[self.func.body]

    def _given(self, arg: Expr, new: Mapping[Expr, Expr]) -> Expr:
        """An argument of a composite; in place of a stand-in the weight as it was."""
        source = _source(arg)
        params = list(self.func.params)
        position = next((i for i, p in enumerate(params) if p.same_as(source)), -1)
        if position not in self.packed:
            return new[arg]
        passed = self.args[position]
        array = constant_numpy(passed) if isinstance(passed, relay.Constant) else None
        ty = arg.checked_type
        type_ = type_text([int(e) for e in ty.shape], str(ty.dtype))
        return self.unpack(str(self.func.attrs["global_symbol"]), array, type_)


def _source(expr: Expr) -> Expr:
    """What a stand-in (partition/finish.py) is made of."""
    while isinstance(expr, relay.Call) and isinstance(expr.op, tvm.ir.Op):
        expr = expr.args[0]
    return expr


def _separate(function: relay.Function, given: Sequence[Expr], target: Target) -> Expr:
    """The body of a function over these arguments, each op a primitive function."""
    function, given = _expanded(function, given, target)
    new: dict[Expr, Expr] = dict(zip(function.params, given, strict=True))
    first_only = _first_only(function.body)
    for expr in postorder(function.body, new):
        is_first = isinstance(expr, relay.TupleGetItem) and expr.tuple_value in first_only
        is_op = isinstance(expr, relay.Call) and expr not in first_only
        new[expr] = _alone(expr, new) if is_op or is_first else item(rebuild(expr, new))
    return new[function.body]


def _expanded(
    function: relay.Function, given: Sequence[Expr], target: Target
) -> tuple[relay.Function, list[Expr]]:
    """A function of the ops that TVM lowers, and its arguments that are no constants.

    Ops that relay.build takes apart (layer_norm, QNN's, on some targets a product of int8) would
    otherwise be taken apart inside of their primitive function, which then has two complicated ops.
    """
    pairs = list(zip(function.params, given, strict=True))
    constants = {p: g for p, g in pairs if isinstance(g, relay.Constant)}
    params = [p for p, _ in pairs if p not in constants]
    alone = tvm.IRModule.from_expr(relay.Function(params, relay.bind(function.body, constants)))
    passes = [
        relay.transform.InferType(),
        relay.qnn.transform.Legalize(),
        relay.qnn.transform.CanonicalizeOps(),
        relay.transform.SimplifyInference(),
        relay.transform.Legalize(),
        relay.transform.InferType(),
    ]
    with target, tvm.transform.PassContext(opt_level=3):
        done = tvm.transform.Sequential(passes)(alone)["main"]
    return done, [g for p, g in pairs if p not in constants]


def _first_only(body: Expr) -> set[Expr]:
    """The calls of which only the first item is ever taken, as of batch_norm."""
    items: dict[Expr, set[int]] = {}
    others: set[Expr] = {body}
    for expr in postorder(body):
        if isinstance(expr, relay.TupleGetItem):
            items.setdefault(expr.tuple_value, set()).add(expr.index)
        elif isinstance(expr, (relay.Call, relay.Tuple)):
            others.update(expr.args if isinstance(expr, relay.Call) else expr.fields)
    return {e for e, taken in items.items() if taken == {0} and e not in others}


def _alone(expr: Expr, new: Mapping[Expr, Expr]) -> relay.Call:
    """The call of a primitive function that does this one op."""
    call = expr.tuple_value if isinstance(expr, relay.TupleGetItem) else expr
    params: dict[Expr, relay.Var] = {}

    def inside(arg: Expr) -> Expr:
        if isinstance(arg, relay.Tuple):
            return relay.Tuple([inside(field) for field in arg.fields])
        if isinstance(arg, relay.Constant) and not arg.checked_type.shape:
            return arg  # as FuseOps: TVM 0.17 reads some scalars when it lowers
        if arg not in params:
            params[arg] = relay.Var(f"p{len(params)}", arg.checked_type)
        return params[arg]

    args = [inside(arg) for arg in call.args]
    body: Expr = relay.Call(call.op, args, call.attrs, call.type_args, call.span)
    if call is not expr:
        body = relay.TupleGetItem(body, expr.index)
    function = relay.Function(list(params.values()), body, expr.checked_type)
    function = function.with_attr("Primitive", tir.IntImm("int32", 1))
    return relay.Call(function, [new[arg] for arg in params])
