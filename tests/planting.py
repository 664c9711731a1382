"""A model with an attribute of one op at another value, as an importer may write it."""

from __future__ import annotations

from typing import Any

from selfbyoc._tvm import GENERATION, tvm
from selfbyoc.ir.generation import ir

if GENERATION == "relay":
    from tvm import relay
else:
    from tvm import relax


def op_calls(mod: Any) -> list[tuple[str, dict[str, Any]]]:
    """Each op of `main`, by its name without a prefix, with its attributes."""
    found: list[tuple[str, dict[str, Any]]] = []

    def visit(node: Any) -> None:
        if _is_call(node):
            found.append((_name(node), _attrs(node)))

    analysis = relay.analysis if GENERATION == "relay" else relax.analysis
    analysis.post_order_visit(mod["main"], visit)
    return found


def planted(mod: Any, op: str, index: int = 0, **attrs: Any) -> Any:
    """`main` with these attributes at the op of this name, the `index`-th of them; typed anew."""
    mutator = _Planted(_Change(op, index, attrs))
    if GENERATION == "relay":
        func = mutator.visit(mod["main"])
        untyped = relay.Function(func.params, func.body)
        return relay.transform.InferType()(tvm.IRModule.from_expr(untyped))
    done = tvm.IRModule(dict(mod.functions.items()), attrs=mod.attrs)
    done.update_func(done.get_global_var("main"), mutator.visit_expr(mod["main"]))
    return done


def _is_call(node: Any) -> bool:
    call = relay.Call if GENERATION == "relay" else relax.Call
    return isinstance(node, call) and isinstance(node.op, tvm.ir.Op)


def _name(call: Any) -> str:
    return str(call.op.name).removeprefix("relax.")


def _attrs(call: Any) -> dict[str, Any]:
    if call.attrs is None:
        return {}
    if GENERATION == "relay":
        return {str(key): call.attrs[key] for key in call.attrs.keys()}  # noqa: SIM118 (no dict)
    return dict(ir._Raw(call.attrs))


class _Change:
    """Of calls: the one that is meant with other attributes, the others as they are."""

    def __init__(self, op: str, index: int, attrs: dict[str, Any]) -> None:
        self.op, self.left, self.attrs = op, index, attrs

    def __call__(self, call: Any) -> Any:
        if not _is_call(call) or _name(call) != self.op:
            return call
        self.left -= 1
        if self.left != -1:
            return call
        key, attrs = call.op.attrs_type_key, {**_attrs(call), **self.attrs}
        if GENERATION == "relay":
            return relay.Call(call.op, call.args, tvm.ir.make_node(key, **attrs))
        made = tvm.ir.attrs.make_node(key, **attrs)
        return relax.Call(call.op, call.args, made, call.ty_args)


if GENERATION == "relay":

    class _Planted(relay.ExprMutator):
        def __init__(self, change: _Change) -> None:
            super().__init__()
            self.change = change

        def visit_call(self, call: Any) -> Any:
            return self.change(super().visit_call(call))

else:

    @relax.expr_functor.mutator
    class _Planted(relax.PyExprMutator):
        def __init__(self, change: _Change) -> None:
            super().__init__()
            self.change = change

        def visit_call_(self, call: Any) -> Any:
            return self.change(super().visit_call_(call))
