"""Where the rows and columns of a resized image lie in the image: in NumPy, and in TensorIR.

    place  = (i + before) * scale + after        in float32, rounded once
    linear   floor(place) and the next one, weighted by what is left of the place
    nearest  the place, rounded by one of five methods

TVM computes the same in float32, which LLVM makes one rounding of where the CPU multiplies and adds
at once, and two elsewhere. A linear result does not show it; the nearest pixel can be another one
(`is_certain`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..tvm import GENERATION, tir
from ..tvm.types import Attrs
from .rounded import round_away, round_even

if TYPE_CHECKING:
    from ..tvm.types import PrimExpr

Array = np.ndarray
# Added before a multiplication by the scale, and after it
MODES: dict[str, tuple[float, float]] = {
    "align_corners": (0.0, 0.0),
    "asymmetric": (0.0, 0.0),
    "half_pixel": (0.5, -0.5),
    "pytorch_half_pixel": (0.5, -0.5),
    "tf_half_pixel_for_nn": (0.5, 0.0),
}
METHODS = ("linear", "nearest_neighbor")
ROUNDINGS = ("", "round", "round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
_EPSILON = 1e-5  # TVM's: what is as near as this to a whole number is that


def _away(x: Array) -> Array:
    return np.trunc(x + np.copysign(np.nextafter(np.float32(0.5), np.float32(0)), x))


_ROUND = (np.rint, round_even) if GENERATION == "relax" else (_away, round_away)
# Added to the place, and what then makes a whole number of it: in NumPy, in TensorIR
_NEAREST: dict[str, tuple[float, Callable[..., Any], Callable[..., Any]]] = {
    "round": (0.0, *_ROUND),
    "round_prefer_floor": (-0.5, np.ceil, tir.ceil),
    "round_prefer_ceil": (0.5, np.floor, tir.floor),
    "floor": (_EPSILON, np.floor, tir.floor),
    "ceil": (-_EPSILON, np.ceil, tir.ceil),
}


@dataclass(frozen=True)
class Resampling:
    """One axis of an image of `extent` pixels that is resized to `out`."""

    extent: int
    out: int
    mode: str
    rounding: str

    @property
    def _terms(self) -> tuple[float, float, float]:
        """What is added, multiplied with, and added then."""
        before, after = MODES[self.mode]
        if self.mode == "align_corners":  # TVM divides by 0 where there is one pixel
            return before, float(np.float32((self.extent - 1) / max(1, self.out - 1))), after
        if self.mode == "pytorch_half_pixel" and self.out == 1:
            return 0.0, 0.0, 0.0
        return before, float(np.float32(self.extent / self.out)), after

    @property
    def _rounds(self) -> tuple[float, Callable[..., PrimExpr], Callable[..., PrimExpr]]:
        default = "round" if self.mode == "align_corners" else "floor"
        return _NEAREST[self.rounding or default]

    @property
    def is_identity(self) -> bool:
        """Whether every pixel is itself."""
        places, pixels = self.places(), np.arange(self.out)
        return self.extent == self.out and bool((places == pixels).all())

    @property
    def is_certain(self) -> bool:
        """Whether the nearest pixel is the same one however TVM and a CPU compute it."""
        found, (added, whole, _) = self.nearest(), self._rounds
        i, (before, scale, after) = np.arange(self.out, dtype="float64"), self._terms
        first, *others = [t for t in (after, added) if t] or [0.0]
        product = (i + before) * scale
        at_once = (product + np.float32(first)).astype("float32")
        one_by_one = _plus(product.astype("float32"), [first])
        variants = [whole(_plus(way, others)) for way in (at_once, one_by_one)]
        if self._is_divided:
            variants = [np.arange(self.out) // (self.out // self.extent)]
        return all((self._within(way) == found).all() for way in variants)

    @property
    def _is_divided(self) -> bool:
        """Whether TVM divides whole numbers instead."""
        floors = self.mode == "asymmetric" and (
            self.rounding in ("", "floor") or GENERATION == "relay"  # 0.17 does so for all of them
        )
        whole = self.out % self.extent == 0
        return floors and whole and self.out / self.extent <= 1 / (1e-5 * (self.extent + 1))

    def places(self) -> Array:
        """The place of each pixel of the result."""
        before, scale, after = self._terms
        exact = (np.arange(self.out, dtype="float64") + before) * scale
        return (exact + after).astype("float32")

    def place(self, i: PrimExpr) -> PrimExpr:
        """The place of one, in TensorIR: a product of two float32 is exact in float64."""
        before, scale, after = (tir.const(t, "float64") for t in self._terms)
        return ((i.astype("float64") + before) * scale + after).astype("float32")

    def nearest(self) -> Array:
        """The pixel that each of the result is."""
        added, whole, _ = self._rounds
        return self._within(whole(_plus(self.places(), [added])))

    def nearest_to(self, i: PrimExpr) -> PrimExpr:
        """The same of one, in TensorIR; it may lie beside the image."""
        added, _, whole = self._rounds
        place = self.place(i)
        return whole(place + tir.const(added, "float32") if added else place).astype("int32")

    def taps(self) -> tuple[Array, Array, Array]:
        """The pixels before and after each place, and the weight of the second."""
        places = self.places()
        first = np.floor(places)
        return self._within(first), self._within(first + 1), places - first

    def first(self, i: PrimExpr) -> PrimExpr:
        """The first of the two, in TensorIR; it may lie before the image."""
        return tir.floor(self.place(i)).astype("int32")

    @property
    def fraction(self) -> tuple[int, int, int]:
        """The place without rounding: of i it is (a * i + b) / c."""
        before, after = (round(2 * term) for term in MODES[self.mode])
        if self.mode == "align_corners":
            return self.extent - 1, 0, max(1, self.out - 1)
        if self.mode == "pytorch_half_pixel" and self.out == 1:
            return 0, 0, 1
        return 2 * self.extent, before * self.extent + after * self.out, 2 * self.out

    def formula(self, method: str) -> tuple[int, int, int] | None:
        """(a, b, c) such that the nearest pixel, or the first of two, is (a * i + b) // c for all i
        of the result, whatever float32 makes of it; None if there is none.
        """
        a, b, c = self.fraction
        i, found = np.arange(self.out), np.floor(self.places())
        floors, halves = [(a, b, c), (a, b + c - 1, c)], (2 * a, 2 * b, 2 * c)
        if method == "nearest_neighbor":
            found, (double, add, whole) = self.nearest(), halves
            floors += [(double, add + c, whole), (double, add + c - 1, whole)]

        def is_same(known: tuple[int, int, int]) -> bool:
            places = (known[0] * i + known[1]) // known[2]
            return bool((self._kept(places, method) == self._kept(found, method)).all())

        return next(filter(is_same, floors), None)

    def _kept(self, places: Array, method: str) -> Array:
        return self._within(places) if method == "nearest_neighbor" else places

    def weight(self, i: PrimExpr) -> PrimExpr:
        """The weight of the second, in TensorIR."""
        place = self.place(i)
        return place - tir.floor(place)

    def _within(self, pixels: Array) -> Array:
        return np.clip(pixels.astype("int64"), 0, self.extent - 1)

    def within(self, pixel: PrimExpr) -> PrimExpr:
        """A whole number as a pixel of the image, in TensorIR."""
        return tir.Max(tir.Min(pixel, self.extent - 1), 0)


def _plus(places: Array, terms: list[float]) -> Array:
    for term in terms:
        places = (places + np.float32(term)).astype("float32")
    return places


def axes_of(attrs: Attrs, image: tuple[int, ...]) -> tuple[Resampling, Resampling]:
    """The vertical and the horizontal axis of a resize2d of an image of this shape."""
    mode, rounding = attrs["coordinate_transformation_mode"], attrs["rounding_method"]
    extents = [int(image[attrs["layout"].index(letter)]) for letter in "HW"]
    down, along = (
        Resampling(extent, int(out), mode, rounding)
        for extent, out in zip(extents, attrs["size"], strict=True)
    )
    return down, along
