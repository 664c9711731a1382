"""Relax: the nodes of `tvm.relax.dpl`."""

from __future__ import annotations

from tvm.ir import Op
from tvm.relax.dpl import pattern as dpl

from ...tvm.types import DFPattern
from ..dataflow_view import ANY, ATTRS, CALL, CONSTANT, EITHER, ITEM, OTHER, TUPLE, View, plain


def is_pattern(value: object) -> bool:
    """Whether it is a pattern of TVM's."""
    return isinstance(value, dpl.DFPattern)


def view(node: DFPattern) -> View:
    """One node of a pattern."""
    if isinstance(node, dpl.WildcardPattern) or _is_any_variable(node):
        return View(ANY)
    if isinstance(node, dpl.ConstantPattern):
        return View(CONSTANT)
    if isinstance(node, dpl.OrPattern):
        return View(EITHER, (node.left, node.right))
    if isinstance(node, dpl.AttrPattern):
        attrs = {str(k): plain(node.attrs[k]) for k in node.attrs.keys()}  # noqa: SIM118
        return View(ATTRS, (node.pattern,), attrs=attrs)
    if isinstance(node, dpl.TupleGetItemPattern):
        return View(ITEM, (node.tuple,), index=int(node.index))
    if isinstance(node, dpl.TuplePattern):
        return View(TUPLE, tuple(node.fields))
    return _call(node)


def _is_any_variable(node: DFPattern) -> bool:
    return isinstance(node, dpl.VarPattern) and not node.name


def _call(node: DFPattern) -> View:
    told = getattr(getattr(node, "op", None), "expr", None)
    if not isinstance(told, Op) or node.args is None:
        return View(OTHER, name=type(node).__name__)
    return View(CALL, tuple(node.args), told.name.removeprefix("relax."))
