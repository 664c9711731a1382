"""Relay: the nodes of `tvm.relay.dataflow_pattern`."""

from __future__ import annotations

from tvm.ir import Op
from tvm.relay import dataflow_pattern as dfp

from ...tvm.types import DFPattern
from ..dataflow_view import (
    ANY,
    ATTRS,
    CALL,
    CONSTANT,
    DOMINATOR,
    EITHER,
    ITEM,
    OTHER,
    TUPLE,
    View,
    plain,
)


def is_pattern(value: object) -> bool:
    """Whether it is a pattern of TVM's."""
    return isinstance(value, dfp.DFPattern)


def view(node: DFPattern) -> View:
    """One node of a pattern."""
    if isinstance(node, (dfp.WildcardPattern, dfp.VarPattern)) and not getattr(node, "name", ""):
        return View(ANY)
    if isinstance(node, dfp.ConstantPattern):
        return View(CONSTANT)
    if isinstance(node, dfp.AltPattern):
        return View(EITHER, (node.left, node.right))
    if isinstance(node, dfp.AttrPattern):
        attrs = {str(k): plain(v) for k, v in node.attrs.items()}
        return View(ATTRS, (node.pattern,), attrs=attrs)
    if isinstance(node, dfp.TupleGetItemPattern):
        return View(ITEM, (node.tuple,), index=int(node.index))
    if isinstance(node, dfp.TuplePattern) and node.fields is not None:
        return View(TUPLE, tuple(node.fields))
    if isinstance(node, dfp.DominatorPattern):
        return View(DOMINATOR, (node.parent, node.child))
    return _call(node)


def _call(node: DFPattern) -> View:
    told = getattr(getattr(node, "op", None), "expr", None)
    if not isinstance(told, Op) or node.args is None:
        return View(OTHER, name=type(node).__name__)
    return View(CALL, tuple(node.args), told.name)
