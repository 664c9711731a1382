"""Relax: ops of a module with their attributes, and one op with others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tvm import relax
from tvm.relax.frontend.onnx import from_onnx

from ...ir.relax import Attributes
from ...tvm import tvm
from ...tvm.types import Attrs, Expr, IRModule

if TYPE_CHECKING:
    import onnx


def op_calls(mod: IRModule) -> list[tuple[str, Attrs]]:
    """Each op of `main` by its name without the prefix, with its attributes."""
    found: list[tuple[str, Attrs]] = []

    def visit(node: Expr) -> None:
        if _is_call(node):
            found.append((_name(node), dict(Attributes(node.attrs))))

    relax.analysis.post_order_visit(mod["main"], visit)
    return found


def planted(mod: IRModule, op: str, index: int = 0, **attrs: object) -> IRModule:
    """`main` with these attributes at the op of this name, the `index`-th of them; typed anew."""
    done = tvm.IRModule(dict(mod.functions.items()), attrs=mod.attrs)
    func = _Planted(op, index, attrs).visit_expr(mod["main"])
    done.update_func(done.get_global_var("main"), func)
    return done


def by_frontend(model: onnx.ModelProto) -> IRModule:
    """What TVM's own frontend makes of an ONNX model, with nothing of this library's."""
    return from_onnx(model, keep_params_in_input=False)


def _is_call(node: Expr) -> bool:
    return isinstance(node, relax.Call) and isinstance(node.op, tvm.ir.Op)


def _name(call: Expr) -> str:
    return str(call.op.name).removeprefix("relax.")


@relax.expr_functor.mutator
class _Planted(relax.PyExprMutator):
    def __init__(self, op: str, index: int, attrs: Mapping[str, object]) -> None:
        super().__init__()
        self.op, self.left, self.attrs = op, index, attrs

    def visit_call_(self, call: Expr) -> Expr:
        made = super().visit_call_(call)
        if not _is_call(made) or _name(made) != self.op:
            return made
        self.left -= 1
        if self.left != -1:
            return made
        key = made.op.attrs_type_key
        attrs = tvm.ir.attrs.make_node(key, **{**Attributes(made.attrs), **self.attrs})
        return relax.Call(made.op, made.args, attrs, made.ty_args)
