"""The pattern kind of each op: what TVM's own fusion takes it for.

The names are TVM's, in its order of fusibility. On Relax TVM finds the kind from the op's PrimFunc
(AnnotateTIROpPattern), on Relay it is registered with the op (TOpPattern); where the two differ,
the table holds both, and tests compare every entry with TVM.
"""

from __future__ import annotations

from ..._tvm import GENERATION

NAMES = (
    "elemwise", "broadcast", "injective", "comm_reduce", "out_elemwise_fusable",
    "", "", "tuple", "opaque",
)  # fmt: skip


def name_of(number: int) -> str:
    """TVM's number as a name."""
    return NAMES[number]


_UNARY = (
    "abs", "cast", "clip", "erf", "exp", "gelu", "leaky_relu", "log", "negative", "relu", "round",
    "rsqrt", "sigmoid", "silu", "sqrt", "tanh",
)  # fmt: skip
_BINARY = ("add", "divide", "maximum", "minimum", "multiply", "power", "right_shift", "subtract")

# kind -> its pattern kind, or (Relay's, Relax's).
PATTERN_KINDS: dict[str, str | tuple[str, str]] = {
    **dict.fromkeys(_UNARY, "elemwise"),
    # Relay registers what an op may do; Relax looks at whether one operand is read in place.
    **dict.fromkeys(_BINARY, ("broadcast", "elemwise")),
    "adaptive_avg_pool2d": "out_elemwise_fusable",
    "avg_pool2d": "out_elemwise_fusable",
    "batch_matmul": "out_elemwise_fusable",
    "batch_norm": ("out_elemwise_fusable", "injective"),
    "bias_add": ("broadcast", "elemwise"),
    "broadcast_to": "broadcast",
    "concatenate": "injective",
    "conv2d": "out_elemwise_fusable",
    "dense": "out_elemwise_fusable",
    "global_avg_pool2d": "out_elemwise_fusable",
    "layer_norm": "out_elemwise_fusable",
    "lrn": "opaque",
    "matmul": "out_elemwise_fusable",
    "max": "comm_reduce",
    "max_pool2d": "out_elemwise_fusable",
    "mean": ("comm_reduce", "out_elemwise_fusable"),
    "requantize": "elemwise",
    "reshape": "injective",
    "softmax": "out_elemwise_fusable",
    "split": "injective",
    "stack": "injective",
    "sum": "comm_reduce",
    "transpose": "injective",
}


def pattern_kind(kind: str, in_place: bool = True) -> str:
    """The pattern kind of an op; opaque for one that is not known.

    `in_place`: one of its inputs at least has the shape of the result.
    """
    found = PATTERN_KINDS.get(kind, "opaque")
    if isinstance(found, str):
        return found
    if kind in _BINARY and not in_place:
        return "broadcast"
    return found[GENERATION == "relax"]


_MOVES = {"elemwise", "broadcast", "injective", "tuple"}


def only_moves(kind: str) -> bool:
    """Whether an op is elementwise or moves data: TVM says so on both generations."""
    found = PATTERN_KINDS.get(kind, "opaque")
    return set((found,) if isinstance(found, str) else found) <= _MOVES
