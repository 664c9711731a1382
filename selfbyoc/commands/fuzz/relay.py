"""Relay: ops of a module with their attributes, and one op with others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tvm import relay

from ...tvm import tvm
from ...tvm.types import Attrs, Expr, IRModule

if TYPE_CHECKING:
    import onnx


def op_calls(mod: IRModule) -> list[tuple[str, Attrs]]:
    """Each op of `main` by its name, with its attributes."""
    found: list[tuple[str, Attrs]] = []

    def visit(node: Expr) -> None:
        if _is_call(node):
            found.append((str(node.op.name), _attrs(node)))

    relay.analysis.post_order_visit(mod["main"], visit)
    return found


def planted(mod: IRModule, op: str, index: int = 0, **attrs: object) -> IRModule:
    """`main` with these attributes at the op of this name, the `index`-th of them; typed anew."""
    func = _Planted(op, index, attrs).visit(mod["main"])
    untyped = relay.Function(func.params, func.body)
    return relay.transform.InferType()(tvm.IRModule.from_expr(untyped))


def by_frontend(model: onnx.ModelProto) -> IRModule:
    """What TVM's own frontend makes of an ONNX model, with nothing of this library's."""
    return relay.frontend.from_onnx(model, freeze_params=True)[0]


def _is_call(node: Expr) -> bool:
    return isinstance(node, relay.Call) and isinstance(node.op, tvm.ir.Op)


def _attrs(call: Expr) -> Attrs:
    if call.attrs is None:
        return {}
    return {str(key): call.attrs[key] for key in call.attrs.keys()}  # noqa: SIM118 (no dict)


class _Planted(relay.ExprMutator):
    def __init__(self, op: str, index: int, attrs: Mapping[str, object]) -> None:
        super().__init__()
        self.op, self.left, self.attrs = op, index, attrs

    def visit_call(self, call: Expr) -> Expr:
        made = super().visit_call(call)
        if not _is_call(made) or str(made.op.name) != self.op:
            return made
        self.left -= 1
        if self.left != -1:
            return made
        attrs = tvm.ir.make_node(made.op.attrs_type_key, **{**_attrs(made), **self.attrs})
        return relay.Call(made.op, made.args, attrs)
