"""Resized images: TVM computes two places and takes four pixels, one by one, for each element."""

from __future__ import annotations

from ...language.case import Case
from ...language.composite import Composite, require
from ...language.match.match import Match
from ...language.nodes import Program
from ...language.pattern import op
from ...ops.resampling import axes_of
from ...ops.resize import why_not
from ...tvm.types import Attr
from ..kernels.resize.kernel import RESIZE
from ..kernels.words import BYTE
from .sizes import check_rows

LEAST_CHANNELS = 8  # as lanes


def _check(match: Match) -> None:
    (resize,) = match.own.ops
    x, attrs = resize.inputs[0], resize.attrs
    dtypes = ("float32", *(BYTE if attrs["method"] == "nearest_neighbor" else ()))
    require(x.dtype in dtypes, f"only {', '.join(dtypes)} is scheduled, found {x.dtype}")
    layout = attrs["layout"]
    require(layout in ("NCHW", "NHWC"), f"only NCHW and NHWC are scheduled, found {layout}")
    channels = x.shape[-1]
    require(
        layout == "NCHW" or channels >= LEAST_CHANNELS,
        f"{channels} channels, the last axis, fill no vector",
    )
    require(not (why := why_not(attrs)), why)
    for axis, what in zip(axes_of(attrs, x.shape), ("row", "column"), strict=True):
        require(
            attrs["method"] == "linear" or axis.is_certain,
            f"which {what} of {axis.extent} is nearest to one of {axis.out} depends on how it is "
            "computed",
        )


def _resize(size: tuple[int, int], **attrs: Attr) -> Program:
    return lambda x: op.resize2d(x, size=size, **attrs)


def _nearest(size: tuple[int, int], **attrs: Attr) -> Program:
    return _resize(size, method="nearest_neighbor", **attrs)


_CORNERS = {"coordinate_transformation_mode": "align_corners"}
_FLOOR = {"coordinate_transformation_mode": "asymmetric", "rounding_method": "floor"}

resize2d = Composite(
    "resize2d",
    lambda x: op.resize2d(x),
    kernel=RESIZE,
    check=_check,
    epilogue=check_rows,
    why="places and weights once for each row and column; along the fewer rows, down in vectors",
    cases=(
        Case(_resize((96, 96)), name="lraspp", x=(1, 21, 12, 12)),
        Case(_nearest((40, 40), **_FLOOR), name="yolo", x=(1, 256, 20, 20)),
        Case(_resize((33, 47)), name="smaller", x=(2, 5, 56, 51)),
        Case(_resize((19, 45), **_CORNERS), name="corners", x=(1, 3, 7, 13)),
        Case(_resize((5, 1)), name="to-one-column", x=(2, 3, 1, 9)),
        Case(_nearest((9, 35)), name="nearest-both-ways", x=(1, 7, 21, 11)),
        Case(_nearest((18, 22), **_FLOOR), name="bytes", x=((1, 7, 9, 11), "uint8")),
        Case(_resize((14, 9), layout="NHWC"), name="channels-last", x=(2, 7, 12, 19)),
    ),
)
