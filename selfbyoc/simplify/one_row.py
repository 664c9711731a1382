"""One axis of pixels is an image of one row: convolutions and pools of one axis as those of two,
with the elementwise ops that follow, so that every composite of images is theirs too.

    relu(conv1d(x) + b)  ->  reshape(relu(conv2d(reshape(x)) + reshape(b)))

Only views are added: the reshapes copy nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..ir.rewriting import Editor, Made, are_same, is_known
from ..ops.attrs import Raw, is_empty, pair, plain
from ..ops.vocabulary import is_declared, is_elementwise_kind
from ..tvm.types import Attr, Expr

OF_TWO_AXES = {
    f"nn.{name}1d": f"nn.{name}2d" for name in ("conv", "max_pool", "avg_pool", "adaptive_avg_pool")
}
_PAIRS = ("strides", "dilation", "pool_size", "kernel_size", "output_size")
_ADDED = {f"{of}_layout": "W" for of in ("data", "kernel", "out")} | {"layout": "W"}
_BY_AXIS = ("bias_add", "dequantize", "quantize")
NDIM = 3  # of an image of one axis, with batch and channels


@dataclass(frozen=True)
class OneRow:
    """Where the axis of rows, of one, is put: so many axes from the end are after it."""

    after: int

    @classmethod
    def of(cls, layout: str) -> OneRow:
        """Before the columns."""
        return cls(len(layout) - layout.index("W"))

    def put(self, shape: Sequence[int]) -> list[int]:
        """A tensor's shape with that axis; its own where broadcasting adds it."""
        at = len(shape) - self.after
        is_needed = at > 0 or len(shape) == NDIM
        return [*shape[:at], 1, *shape[at:]] if is_needed else list(shape)

    def axis(self, axis: int) -> int:
        """The place of an axis of the image with one axis."""
        at = axis % NDIM
        return at + (at >= NDIM - self.after)


def of_two_axes(name: str, raw: Raw) -> tuple[str, dict[str, Attr], OneRow] | None:
    """A window of one axis by its op and attributes -> the op of two axes, its attributes, and
    where the rows are. None of others, of blocked layouts, and of an op that a user declared.
    """
    if name not in OF_TWO_AXES or is_declared(name):
        return None
    layouts = {key: str(plain(raw[key]) or "") for key in raw if key in _ADDED}
    image = layouts.get("data_layout") or layouts["layout"]
    given = [text for text in layouts.values() if text]
    if any(len(text) != NDIM or "W" not in text for text in given):
        return None
    if layouts.get("out_layout") not in (None, "", image):
        return None
    attrs = {key: _of_two(key, raw[key]) for key in raw if not is_empty(plain(raw[key]))}
    return OF_TWO_AXES[name], attrs, OneRow.of(image)


def _of_two(key: str, value: Attr) -> Attr:
    if key in _PAIRS:
        return (1, pair(value)[-1])
    if key == "padding":
        left, right = pair(value)
        return (0, left, 0, right)
    return str(plain(value)).replace("W", "HW") if key in _ADDED else plain(value)


class ImagesOfOneRow:
    """Windows of one axis, and what computes each element of their results by itself."""

    def __init__(self) -> None:
        self.rows: dict[Expr, OneRow] = {}  # of images of one row

    def __call__(self, made: Made, to: Editor) -> Expr | None:
        """The view of an image of one row, in the place of a call."""
        for rule in (self._view, self._window, self._batch_norm, self._elementwise):
            found = rule(made, to)
            if found is not None:
                return found
        return None

    def _view(self, made: Made, to: Editor) -> Expr | None:
        """Importers write pools of one axis as such images themselves: what takes the axis of rows
        from a window's result, or puts it back.
        """
        if made.kind != "reshape":
            return None
        source, shape, was = made.args[0], to.shape(made.call), to.shape(made.given[0])
        if not is_known(shape) or not is_known(was):
            return None
        image = self._image(source, to)
        if image is not None and are_same(to.shape(image) or [], shape):
            return image
        window = to.made(source)
        of_images = window is not None and window.name in OF_TWO_AXES.values()
        if not of_images or len(shape) != NDIM or not are_same(OneRow(1).put(shape), was):
            return None
        self.rows[source] = OneRow(1)
        return to.emit("reshape", source, shape=tuple(shape))

    def _window(self, made: Made, to: Editor) -> Expr | None:
        found = of_two_axes(made.name, made.raw)
        if found is None or not all(is_known(to.shape(x)) for x in (*made.given, made.call)):
            return None
        name, attrs, row = found
        layout = str(made.raw.get("kernel_layout", ""))
        weights = [self._put(w, OneRow.of(layout), to) for w in made.args[1:]]
        image = to.call(name, self._put(made.args[0], row, to), *weights, **attrs)
        return self._viewed(image, row, made, to)

    def _batch_norm(self, made: Made, to: Editor) -> Expr | None:
        image = self._image(made.args[0], to) if made.name == "nn.batch_norm" else None
        if image is None:
            return None
        row, shape = self.rows[image], to.shape(made.given[0]) or []
        norm = to.again(made, [image, *made.args[1:]], axis=row.axis(int(made.raw["axis"])))
        normal, *statistics = (to.item(norm, n) for n in range(len(to.dtypes(norm))))
        self.rows[normal] = row
        view = to.emit("reshape", normal, shape=tuple(shape))
        return to.joined([view, *statistics])

    def _elementwise(self, made: Made, to: Editor) -> Expr | None:
        rows = {self.rows[i] for arg in made.args if (i := self._image(arg, to)) is not None}
        result = to.shape(made.call)
        is_one = len(rows) == 1 and is_elementwise_kind(made.kind)
        if not is_one or not is_known(result) or len(result) != NDIM:
            return None
        (row,) = rows
        if made.kind in _BY_AXIS:
            return self._viewed(self._by_axis(made, row, to), row, made, to)
        shapes = [to.shape(arg) for arg in made.given]  # none of a number of Relax's
        if not all(shape is None or is_known(shape) for shape in shapes):
            return None
        pairs = zip(made.args, shapes, strict=True)
        args = [arg if shape is None else self._put(arg, row, to) for arg, shape in pairs]
        return self._viewed(to.again(made, args), row, made, to)

    def _by_axis(self, made: Made, row: OneRow, to: Editor) -> Expr:
        """An op whose first input alone is an image; the others lie along an axis of it."""
        image = self._put(made.args[0], row, to)
        return to.again(made, [image, *made.args[1:]], axis=row.axis(int(made.raw["axis"])))

    def _image(self, arg: Expr, to: Editor) -> Expr | None:
        """The image of one row of which an argument is the view."""
        view = to.made(arg)
        if view is None or view.kind != "reshape":
            return None
        return view.args[0] if view.args[0] in self.rows else None

    def _put(self, arg: Expr, row: OneRow, to: Editor) -> Expr:
        """An argument with the axis of rows."""
        image = self._image(arg, to)
        if image is not None and self.rows[image] == row:
            return image
        was = to.shape(arg) or []
        shape = row.put(was)
        if len(shape) == len(was):
            return arg
        known = _constant(arg, to)
        if known is not None:
            return to.constant(np.reshape(known, shape))
        before = to.made(arg)
        if before is not None and before.kind == "dequantize":
            return self._by_axis(before, row, to)  # a kernel of levels reads them right before it
        return to.emit("reshape", arg, shape=tuple(shape))

    def _viewed(self, image: Expr, row: OneRow, made: Made, to: Editor) -> Expr:
        self.rows[image] = row
        return to.emit("reshape", image, shape=tuple(to.shape(made.call) or ()))


def _constant(arg: Expr, to: Editor) -> np.ndarray | None:
    """What a constant holds, or one that is seen in another shape."""
    before = to.made(arg)
    if before is not None and before.kind == "reshape":
        arg = before.args[0]
    return to.array(arg)
