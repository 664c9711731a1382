"""Reductions: sum, mean, max."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..tvm.types import Attr
from .attrs import Raw, must, only, plain
from .kind import Array, OpKind, form
from .numpy_windows import mean
from .reduce import reduce

_EXCLUDE = {"exclude": must(False)}  # else `axis` names those that stay


def _axis(raw: Raw) -> dict[str, Attr]:
    return {"axis": plain(raw["axis"]), "keepdims": bool(raw["keepdims"])}


def _reduction(
    name: str, doc: str, numpy: Callable[..., Array], fuses: str | tuple[str, str] = "comm_reduce"
) -> OpKind:
    return OpKind(
        name,
        reduce(name),
        lambda ins, call: numpy(ins[0], axis=call.attrs["axis"], keepdims=call.attrs["keepdims"]),
        attrs={"axis": None, "keepdims": False},
        relay=form(name, only("axis", "keepdims"), needs=_EXCLUDE),
        relax=form(name, _axis),
        fuses=fuses,
        doc=f"{doc} along axes.",
    )


KINDS = (
    _reduction("max", "The largest element", np.max),
    _reduction("mean", "The mean", mean, ("comm_reduce", "out_elemwise_fusable")),
    _reduction("sum", "The sum", np.sum),
    # Only ever read as part of others.
    OpKind("min", relax=form("min", _axis), fuses="comm_reduce"),
    OpKind(
        "variance", relay=form("variance", only("axis", "keepdims", "unbiased"), needs=_EXCLUDE)
    ),
)
