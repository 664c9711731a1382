"""Local response normalisation in one pass: TVM makes two to four of it, and a `pow` an element."""

from __future__ import annotations

from ...language.case import Case
from ...language.composite import Composite, require
from ...language.match.match import Match
from ...language.nodes import Program
from ...language.pattern import op
from ...tvm.types import Attr


def _check(match: Match) -> None:
    (call,) = match.ops
    x, attrs = call.inputs[0], call.attrs
    require(x.dtype == "float32", f"only float32 is scheduled, found {x.dtype}")
    axis = attrs["axis"] % x.ndim
    require(axis < x.ndim - 1, f"the neighbours lie along the last axis, {axis}")
    # The power of what may be 0 or less is left to the C library.
    text = f"bias {attrs['bias']} and alpha {attrs['alpha']} may give a base that is not positive"
    require(attrs["bias"] > 0 and attrs["alpha"] >= 0, text)


def _lrn(**attrs: Attr) -> Program:
    return lambda x: op.lrn(x, **attrs)


lrn = Composite(
    "lrn",
    lambda x: op.lrn(x),
    check=_check,
    epilogue=True,
    why="one pass over the image; square roots or a polynomial in place of pow",
    cases=(
        Case(
            _lrn(size=5, alpha=1e-4, beta=0.75, bias=1.0),
            name="googlenet",
            x=(1, 64, 55, 55),
            generations=("relay",),  # Relax has no lrn: it is read out of what importers write
        ),
        Case(
            _lrn(size=3, alpha=0.3, beta=0.6, bias=0.5),
            name="odd",
            x=(2, 5, 7, 9),
            generations=("relay",),
        ),
    ),
)
