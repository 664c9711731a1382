"""Relax: one axis of pixels as an image of one row (simplify/one_row.py)."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relax

from ...ir.relax import Attributes, Constant
from ...ir.relax.emit import constant
from ...tvm import constant_numpy, tvm
from ..one_row import NDIM, OF_TWO_AXES, OneRow, attrs_in_rows, is_elementwise, of_two_axes
from .exprs import are_same, is_op, open_shape

Expr = Any  # relax.Expr: TVM ships no types
VIEWS = {f"relax.{name}" for name in ("expand_dims", "reshape", "squeeze")}
OF_IMAGES = {f"relax.nn.{name}" for name in OF_TWO_AXES.values()}


@relax.expr_functor.mutator
class ImagesOfOneRow(relax.PyExprMutator):
    """Windows of one axis, and what computes each element of their results by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[Expr, OneRow] = {}  # variables of images of one row

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        """A call as it was, or the view of an image of one row."""
        done = super().visit_call_(call)
        if not isinstance(done, relax.Call) or not isinstance(done.op, tvm.ir.Op):
            return done
        for rule in (self._view, self._window, self._elementwise):
            found = rule(done, call)
            if found is not None:
                return found
        return done

    def visit_tuple_getitem_(self, item: relax.TupleGetItem) -> relax.Expr:
        """The normalised image of a batch norm, too."""
        done = super().visit_tuple_getitem_(item)
        norm = self._bound(done.tuple_value)
        image = self._image(norm.args[0]) if is_op(norm, "nn.batch_norm") else None
        if image is None or done.index != 0:
            return done
        row = self.rows[image]
        attrs = attrs_in_rows(dict(Attributes(norm.attrs)), row)
        made = self.builder_.emit(relax.op.nn.batch_norm(image, *norm.args[1:], **attrs))
        return self._viewed(relax.TupleGetItem(made, 0), row, item.ty)

    def _view(self, done: relax.Call, call: relax.Call) -> Expr | None:
        """Importers write pools of one axis as such images themselves: what takes the axis of rows
        from a window's result, or puts it back.
        """
        if done.op.name not in VIEWS:
            return None
        source, shape, was = done.args[0], open_shape(call), open_shape(call.args[0])
        image = self._image(source)
        if image is not None and are_same(open_shape(image), shape):
            return image
        window = self._bound(source)
        of_images = isinstance(window, relax.Call) and getattr(window.op, "name", "") in OF_IMAGES
        if not of_images or len(shape) != NDIM or not are_same(OneRow(1).put(shape), was):
            return None
        self.rows[source] = OneRow(1)
        return relax.op.reshape(source, shape)

    def _window(self, done: relax.Call, call: relax.Call) -> Expr | None:
        name = done.op.name.removeprefix("relax.")
        found = of_two_axes(name, Attributes(done.attrs))
        if found is None or not all(open_shape(arg) for arg in (*call.args, call)):
            return None
        make, attrs, row = found
        weights = [self._put(w, OneRow.of(str(done.attrs.kernel_layout))) for w in done.args[1:]]
        made = getattr(relax.op.nn, make)(self._put(done.args[0], row), *weights, **attrs)
        made = relax.Call(made.op, made.args, made.attrs, span=call.span)
        return self._viewed(made, row, call.ty)

    def _elementwise(self, done: relax.Call, call: relax.Call) -> Expr | None:
        rows = {self.rows[i] for a in done.args if (i := self._image(a)) is not None}
        is_one = len(rows) == 1 and is_elementwise(done.op.name.removeprefix("relax."))
        if not is_one or len(open_shape(call)) != NDIM:
            return None
        (row,) = rows
        if not all(open_shape(arg) or arg.ty.ndim == 0 for arg in call.args if _is_tensor(arg)):
            return None
        args = [self._put(arg, row) if _is_tensor(arg) else arg for arg in done.args]
        made = relax.Call(done.op, args, done.attrs, done.ty_args, call.span)
        return self._viewed(made, row, call.ty)

    def _bound(self, arg: Expr) -> Any:
        """What a variable stands for; None of a parameter, and of anything else."""
        return self.builder_.lookup_binding(arg) if _is_var(arg) else None

    def _image(self, arg: Expr) -> Expr | None:
        """The image of one row of which an argument is the view."""
        view = self._bound(arg)
        return view.args[0] if is_op(view, "reshape") and view.args[0] in self.rows else None

    def _put(self, arg: Expr, row: OneRow) -> Expr:
        """An argument with the axis of rows."""
        image = self._image(arg)
        if image is not None and self.rows[image] == row:
            return image
        was = open_shape(arg)
        shape = row.put(was)
        if len(shape) == len(was):
            return arg
        known = self._constant(arg)
        if known is not None:
            return constant(np.reshape(known, shape))
        return self.builder_.emit(relax.op.reshape(arg, shape))

    def _constant(self, arg: Expr) -> np.ndarray | None:
        """What a constant holds, or one that is seen in another shape."""
        bound = self._bound(arg) if _is_var(arg) else arg
        bound = bound.args[0] if is_op(bound, "reshape") else bound
        return constant_numpy(bound) if isinstance(bound, Constant) else None

    def _viewed(self, made: Expr, row: OneRow, ty: Any) -> Expr:
        image = self.builder_.emit(made)
        self.rows[image] = row
        return relax.op.reshape(image, ty.shape)


def _is_var(arg: Expr) -> bool:
    return isinstance(arg, relax.Var)


def _is_tensor(arg: Expr) -> bool:
    return isinstance(getattr(arg, "ty", None), relax.TensorType)
