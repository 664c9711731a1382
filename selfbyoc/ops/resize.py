"""Images resized: a pixel of the result is one of the image, or lies between four of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import UnsupportedOp
from ..graph import OpCall, Value
from ..tvm import dtype_of, te, tir
from ..tvm.types import Attr, Attrs
from .attrs import Raw, only, plain
from .kind import Array, OpKind, in_both
from .resampling import METHODS, MODES, ROUNDINGS, Resampling, axes_of
from .windows import letters

if TYPE_CHECKING:
    from ..tvm.types import PrimExpr, Tensor


def why_not(attrs: Attrs) -> str:
    """Which of these attributes has no meaning here, if one has none."""
    for name, known in (
        ("method", METHODS),
        ("coordinate_transformation_mode", tuple(MODES)),
        ("rounding_method", ROUNDINGS),
    ):
        if attrs[name] not in known:
            return f"{name} {attrs[name]!r}; expected one of {', '.join(map(repr, known))}"
    return ""


def size_of(layout: str, result: Value) -> tuple[int | None, ...]:
    """The attribute `size`, which follows from the result."""
    return tuple(result.shape[str(layout).index(letter)] for letter in "HW")


@dataclass(frozen=True)
class Table:
    """For each pixel along one axis of the result: the pixel of the image that it is, or the first
    of two, and the weight of the second.
    """

    axis: Resampling
    pixel: Callable[[PrimExpr], PrimExpr]
    weight: Tensor | None

    def __call__(self, read: Callable[[PrimExpr], PrimExpr], at: PrimExpr) -> PrimExpr:
        """The pixel at a place of the result; `read` reads one of the image. Only here is it known
        to TVM that this lies in the image: what a table holds it cannot know.
        """
        if self.weight is None:
            return read(self.axis.within(self.pixel(at)))
        first, second = (
            read(self.axis.within(self.pixel(at) + n)).astype("float32") for n in range(2)
        )
        weight = self.weight(at)
        return first * (tir.const(1, "float32") - weight) + second * weight


def table(axis: Resampling, method: str, name: str, computed: bool = False) -> Table:
    """The table of an axis, a stage for each column of it; with the pixels `computed` in place, by
    a formula of whole numbers.
    """

    def stage(what: str, function: Callable[[PrimExpr], PrimExpr]) -> Tensor:
        return te.compute((axis.out,), lambda i: function(i), name=f"{name}_{what}")

    known = axis.formula(method) if computed else None

    def pixel(i: PrimExpr) -> PrimExpr:
        assert known is not None
        a, b, c = known
        return tir.floordiv(i * a + b, c)

    if method == "nearest_neighbor":
        return Table(axis, pixel if known else stage("nearest", axis.nearest_to), None)
    first = pixel if known else stage("first", axis.first)
    return Table(axis, first, stage("weight", axis.weight))


def resize2d(ins: Sequence[Tensor], call: OpCall) -> Tensor:
    """In any layout that names its axes by letters; four pixels, or one, for each of the result."""
    (x,) = ins
    if why := why_not(call.attrs):
        raise UnsupportedOp(f"{call.name}: {why}")
    at = letters(call.attrs["layout"], call, "NCHW")
    axes = axes_of(call.attrs, tuple(x.shape))
    method, dtype = call.attrs["method"], dtype_of(x)
    down, along = (
        table(axis, method, f"{call.name}_{name}")
        for axis, name in zip(axes, ("rows", "columns"), strict=True)
    )

    def element(*i: PrimExpr) -> PrimExpr:
        def pixel(row: PrimExpr, column: PrimExpr) -> PrimExpr:
            where = {at["H"]: row, at["W"]: column}
            return x(*(where.get(n, v) for n, v in enumerate(i)))

        def row(r: PrimExpr) -> PrimExpr:
            return along(lambda column: pixel(r, column), i[at["W"]])

        return down(row, i[at["H"]]).astype(dtype)

    return te.compute(call.outputs[0].shape, element, name=call.name)


def _numpy_resize2d(ins: Sequence[Array], call: OpCall) -> Array:
    (x,), attrs = ins, call.attrs
    if why := why_not(attrs):
        raise UnsupportedOp(f"{call.name}: {why}")
    found = x
    for axis, letter in zip(axes_of(attrs, x.shape), "HW", strict=True):
        found = _numpy_along(found, axis, attrs["layout"].index(letter), attrs["method"])
    return found.astype(x.dtype)


def _numpy_along(x: Array, axis: Resampling, n: int, method: str) -> Array:
    if method == "nearest_neighbor":
        return x.take(axis.nearest(), axis=n)
    first, second, weight = axis.taps()
    share = weight.astype("float64").reshape([-1 if i == n else 1 for i in range(x.ndim)])
    return x.take(first, axis=n) * (1 - share) + x.take(second, axis=n) * share


def _is_not_cubic(_: float, raw: Raw) -> bool:
    return bool(plain(raw["method"]) != "cubic")


def _is_not_cropped(_: Attr, raw: Raw) -> bool:
    return bool(plain(raw["coordinate_transformation_mode"]) != "tf_crop_and_resize")


_ATTRS = {
    "layout": "NCHW", "method": "linear",
    "coordinate_transformation_mode": "half_pixel", "rounding_method": "",
}  # fmt: skip

KINDS = (
    OpKind(
        "resize2d",
        resize2d,
        _numpy_resize2d,
        attrs=_ATTRS,
        read_attrs=("size",),
        **in_both(
            "image.resize2d",
            only(*_ATTRS),
            needs={
                "cubic_alpha": _is_not_cubic,
                "cubic_exclude": _is_not_cubic,
                "roi": _is_not_cropped,
                "extrapolation_value": _is_not_cropped,
            },
            idle=("size",),  # follows from the types; Relax has it as an argument
        ),
        fuses="injective",
        takes="x",
        doc=(
            "Images with other numbers of rows and columns: between the nearest two of each "
            "(method 'linear'), or the nearest one ('nearest_neighbor')."
        ),
    ),
)
