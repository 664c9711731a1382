"""Products that a model asks for in halves: by a weight of halves, or of two computed sides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..graph import HALVES, OpCall
from ..tvm import GENERATION, te
from .attrs import Raw
from .kind import OWN, Array, OpKind, Typed, in_both

if TYPE_CHECKING:
    from ..tvm.types import Attrs, Tensor


CONVOLUTIONS = ("conv2d", "conv2d_transpose")
WIDENS = ("cast", "half_weight")


def reads_halves(kind: str, attrs: Attrs) -> bool:
    """Whether an op is a convolution whose weight may be of halves. In groups 0.17's MergeComposite
    asks for its type before it is known.
    """
    return kind in CONVOLUTIONS and (GENERATION == "relax" or int(attrs["groups"]) == 1)


def _types(ins: Sequence[Typed], attrs: Raw) -> list[Typed]:
    ((shape, dtype),) = ins
    if dtype not in HALVES:
        raise ValueError(f"expected a weight of {' or '.join(HALVES)}, found {dtype}")
    return [(shape, "float32")]


def _compute(ins: Sequence[Tensor], call: OpCall) -> Tensor:
    (weight,) = ins
    return te.compute(weight.shape, lambda *i: weight(*i).astype("float32"), name=call.name)


def _numpy(ins: Sequence[Array], call: OpCall) -> Array:
    # At least: what is moved a little, to ask what rounding explains, has more bits.
    return ins[0].astype(np.promote_types(ins[0].dtype, np.float32))


def _types_of_factor(ins: Sequence[Typed], attrs: Raw) -> list[Typed]:
    ((shape, dtype),) = ins
    if dtype != "float32":
        raise ValueError(f"expected a factor of float32, found {dtype}")
    return [(shape, dtype)]


def _factor(ins: Sequence[Tensor], call: OpCall) -> Tensor:
    (x,) = ins
    return te.compute(x.shape, lambda *i: x(*i), name=call.name)


KINDS = (
    OpKind(
        "half_weight", _compute, _numpy, types=_types, **in_both(OWN + "half_weight"),
        fuses="elemwise", is_folded=False,
        takes="weight",
        doc="A constant weight of float16 or bfloat16 as float32, in a product that a model has in "
        "that dtype: what it is multiplied by may be rounded to it, or not.",
    ),
    OpKind(
        "half_factor", _factor, lambda ins, call: ins[0], types=_types_of_factor,
        **in_both(OWN + "half_factor"),
        fuses="elemwise", is_folded=False,
        takes="x",
        doc="x itself, the right side of a batch_matmul that a model has in bfloat16: both sides "
        "may be rounded to it, or not.",
    ),
)  # fmt: skip
