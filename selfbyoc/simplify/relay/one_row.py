"""Relay: one axis of pixels as an image of one row (simplify/one_row.py)."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relay

from ...ir.relay.emit import constant
from ...ir.relay.walk import postorder, rebuild
from ...tvm import attrs_dict, constant_numpy, tvm
from ..one_row import NDIM, OneRow, attrs_in_rows, is_elementwise, of_two_axes
from .exprs import name_of

Expr = Any  # relay.Expr: TVM ships no types


def images_of_one_row(mod: tvm.IRModule) -> tvm.IRModule:
    """The typed module; windows of one axis, and what computes each element of their results by
    itself, are of two.
    """
    main = mod["main"]
    rows = _Rows()
    for expr in postorder(main.body):
        rows.add(expr)
    if not rows.images:
        return mod
    done = tvm.IRModule(dict(mod.functions.items()), mod.type_definitions)
    body = rows.new[main.body]
    known = relay.Function(main.params, body, main.ret_type, main.type_params, main.attrs)
    done.update_func(done.get_global_var("main"), known)
    return relay.transform.InferType()(done)


class _Rows:
    """What each expression became, and the images of one row of which some are views."""

    def __init__(self) -> None:
        self.new: dict[Expr, Expr] = {}
        self.images: dict[Expr, tuple[Expr, OneRow]] = {}  # by the expression as it was

    def add(self, expr: Expr) -> None:
        """An expression whose inputs are known."""
        for rule in (self._window, self._batch_norm, self._elementwise):
            found = rule(expr)
            if found is not None:
                image = _with_span(found[0], expr.span)
                self.images[expr] = image, found[1]
                self.new[expr] = relay.reshape(image, _shape(expr))
                return
        self.new[expr] = rebuild(expr, self.new)

    def _window(self, expr: Expr) -> tuple[Expr, OneRow] | None:
        found = of_two_axes(name_of(expr), attrs_dict(expr.attrs)) if name_of(expr) else None
        if found is None or not all(_shape(e) for e in (expr, *expr.args)):
            return None
        make, attrs, row = found
        weights = [self._put(w, OneRow.of(str(expr.attrs.kernel_layout))) for w in expr.args[1:]]
        return getattr(relay.nn, make)(self._put(expr.args[0], row), *weights, **attrs), row

    def _batch_norm(self, expr: Expr) -> tuple[Expr, OneRow] | None:
        if not isinstance(expr, relay.TupleGetItem) or expr.index != 0:
            return None
        norm = expr.tuple_value
        if name_of(norm) != "nn.batch_norm" or norm.args[0] not in self.images:
            return None
        image, row = self.images[norm.args[0]]
        attrs = attrs_in_rows(attrs_dict(norm.attrs), row)
        rest = [self.new[arg] for arg in norm.args[1:]]
        return relay.nn.batch_norm(image, *rest, **attrs)[0], row

    def _elementwise(self, expr: Expr) -> tuple[Expr, OneRow] | None:
        name = name_of(expr)
        known = {self.images[a][1] for a in expr.args if a in self.images} if name else set()
        if len(known) != 1 or not is_elementwise(name) or len(_shape(expr)) != NDIM:
            return None
        (row,) = known
        if name == "nn.bias_add":
            image, bias = self._put(expr.args[0], row), self.new[expr.args[1]]
            return relay.nn.bias_add(image, bias, row.axis(int(expr.attrs.axis))), row
        if not all(_shape(arg) or not arg.checked_type.shape for arg in expr.args):
            return None
        args = [self._put(arg, row) for arg in expr.args]
        return relay.Call(expr.op, args, expr.attrs, expr.type_args), row

    def _put(self, arg: Expr, row: OneRow) -> Expr:
        """An argument with the axis of rows."""
        if arg in self.images and self.images[arg][1] == row:
            return self.images[arg][0]
        was = _shape(arg)
        shape = row.put(was)
        if shape == was:
            return self.new[arg]
        if isinstance(arg, relay.Constant):
            return constant(np.reshape(constant_numpy(arg), shape))
        return relay.reshape(self.new[arg], shape)


def _shape(expr: Expr) -> list[int]:
    """Extents; none where one is not known, or it is no tensor."""
    extents = getattr(expr.checked_type, "shape", ())
    known = [int(e) for e in extents if isinstance(e, tvm.tir.IntImm)]
    return known if len(known) == len(extents) else []


def _with_span(made: Expr, span: Any) -> Expr:
    """The call as the model names it."""
    if not isinstance(made, relay.Call):
        return made
    return relay.Call(made.op, made.args, made.attrs, made.type_args, span)
