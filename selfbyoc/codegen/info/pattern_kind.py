"""The pattern kind of each op: what TVM's own fusion takes it for.

The names are TVM's, in its order of fusibility. On Relax TVM finds the kind from the op's PrimFunc
(AnnotateTIROpPattern), on Relay it is registered with the op (TOpPattern); where the two differ,
an op kind says both (ops/), and tests compare each with TVM.
"""

from __future__ import annotations

from ...ops.kind import BROADCASTS
from ...ops.vocabulary import KINDS
from ...tvm import GENERATION

NAMES = (
    "elemwise", "broadcast", "injective", "comm_reduce", "out_elemwise_fusable",
    "", "", "tuple", "opaque",
)  # fmt: skip


def name_of(number: int) -> str:
    """TVM's number as a name."""
    return NAMES[number]


def pattern_kind(kind: str, in_place: bool = True) -> str:
    """The pattern kind of an op; opaque for one that is not known.

    `in_place`: one of its inputs at least has the shape of the result.
    """
    found = _of(kind)
    if isinstance(found, str):
        return found
    if found == BROADCASTS and not in_place:
        return "broadcast"
    return found[GENERATION == "relax"]


def _of(kind: str) -> str | tuple[str, str]:
    return KINDS[kind].fuses if kind in KINDS else "opaque"


_MOVES = {"elemwise", "broadcast", "injective", "tuple"}


def only_moves(kind: str) -> bool:
    """Whether an op is elementwise or moves data: TVM says so on both generations."""
    found = _of(kind)
    return set((found,) if isinstance(found, str) else found) <= _MOVES
