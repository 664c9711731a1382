"""Means of levels, or of integers, over the pixels of images keep their axes, as pools do, and lose
them behind what brings them back to 8 bits.

    requantize(mean(x, (2, 3)))  ->  reshape(requantize(mean(x, (2, 3), keepdims=True)))
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.rewriting import Editor, Made, dtype, is_known, size_one
from ..ops.reduce import reduced_axes
from ..tvm.types import Expr, PrimExpr

PIXELS = ((2, 3), (1, 2))  # of NCHW and of NHWC
_BACK = ("cast", "clip", "requantize")


class MeansOfImages:
    """Means that drop the axes of their images."""

    def __init__(self) -> None:
        self.images: dict[Expr, Expr] = {}  # a call of reshape that was written -> what it reads

    def __call__(self, made: Made, to: Editor) -> Expr | None:
        """A mean, or what is computed of one, with all axes, and reshaped."""
        if made.kind == "mean":
            return self._mean(made, to)
        before = to.made(made.args[0]) if made.kind in _BACK else None
        image = None if before is None else self.images.get(before.call)
        if image is None:
            return None
        x, *numbers = made.args
        if not all(size_one(to, v) for v in numbers if to.is_tensor(v)):
            return None
        shape = to.shape(x)
        return self._reshaped(to.again(made, [image, *numbers]), shape, to) if shape else None

    def _mean(self, made: Made, to: Editor) -> Expr | None:
        (x, *_), before, attrs = made.args, to.made(made.args[0]), made.attrs
        shape = to.shape(x)
        if not is_known(shape) or len(shape) != 4 or attrs.get("keepdims", True):
            return None
        axes = reduced_axes(attrs["axis"], 4)
        of_levels = before is not None and before.kind == "dequantize"
        if axes not in PIXELS or not (of_levels or "int" in dtype(to, x)):
            return None
        kept = to.emit("mean", x, axis=axes, keepdims=True)
        return self._reshaped(kept, [shape[n] for n in range(4) if n not in axes], to)

    def _reshaped(self, image: Expr, shape: Sequence[PrimExpr], to: Editor) -> Expr:
        found = to.emit("reshape", image, shape=tuple(shape))
        made = to.made(found)
        assert made is not None
        self.images[made.call] = image
        return found
