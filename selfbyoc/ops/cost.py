"""What an op costs by its shapes: operations, and bytes that it reads and writes as one of its own.

A multiply-add is 2 operations, any other operation on one element is 1, exp and erf too; comparing
(max, relu, clip) counts; moving data (reshape, transpose, concatenate, cast) does not. Softmax is 5
an element (max, subtract, exp, sum, divide), layer_norm 8 (two sums, a difference, a square, two
normalising and two affine operations), rms_norm 4 (a square, a sum, two products), resize2d 6 if it
is linear; a recurrent layer has 20 beside its products.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ..graph import OpCall

Shape = Sequence[int]

# An op by its kind in the vocabulary, or by TVM's name where it has none.
MOVES = (
    "arange", "broadcast_to", "cast", "concatenate", "embedding", "expand_dims", "flatten", "flip",
    "full", "gather_elements", "gather_nd", "pad", "permute_dims", "reshape", "rotate_half",
    "split", "squeeze", "stack", "strided_slice", "take", "tile", "transpose",
)  # fmt: skip
_SIZES = {"bool": 8, "handle": 64}
_GATHERS = ("embedding", "gather_elements", "gather_nd", "strided_slice", "take")
_PER_ELEMENT = {
    "batch_norm": 2, "gelu": 5, "group_norm": 8, "hard_swish": 5, "instance_norm": 8,
    "layer_norm": 8, "log_softmax": 6, "rms_norm": 4, "sigmoid": 4, "silu": 5, "softmax": 5,
}  # fmt: skip


@dataclass(frozen=True)
class Sizes:
    """An op's kind, attributes and shapes."""

    kind: str
    attrs: Mapping[str, Any]
    inputs: Sequence[Shape]
    outputs: Sequence[Shape]

    @property
    def size(self) -> int:
        """Elements of its first result."""
        return math.prod(self.outputs[0])


def _convolution(op: Sizes) -> int:
    kernel, layout = op.inputs[1], str(op.attrs.get("kernel_layout", "OI"))
    return 2 * op.size * math.prod(kernel) // kernel[layout.index("O")]


def _transposed(op: Sizes) -> int:
    """Every element of the image times its kernels."""
    return 2 * math.prod(op.inputs[0]) * math.prod(op.inputs[1][1:])


def _dense(op: Sizes) -> int:
    return 2 * op.size * op.inputs[0][-1]


def _batch_matmul(op: Sizes) -> int:
    return 2 * op.size * op.inputs[0][-2 if op.attrs.get("transpose_a") else -1]


def _pool(op: Sizes) -> int:
    return op.size * math.prod(op.attrs["pool_size"])


def _reduction(op: Sizes) -> int:
    return math.prod(op.inputs[0])


def _resized(op: Sizes) -> int:
    """Between two rows, then between two columns; the nearest pixel is moved."""
    return 6 * op.size if op.attrs["method"] == "linear" else 0


def _lrn(op: Sizes) -> int:
    return op.size * (2 * int(op.attrs.get("size", 1)) + 4)


def _recurrent(op: Sizes) -> int:
    """The products of the states with the weights of all gates; some activations of each state."""
    return 2 * math.prod(op.inputs[0]) * op.inputs[1][-1] + 20 * op.size


_FLOPS: dict[str, Callable[[Sizes], int]] = {
    "argmax": _reduction, "argmin": _reduction, "avg_pool2d": _pool, "batch_matmul": _batch_matmul,
    "conv1d": _convolution, "conv1d_transpose": _transposed, "conv2d": _convolution,
    "conv2d_transpose": _transposed, "conv3d": _convolution, "dense": _dense,
    "global_avg_pool2d": _reduction, "gru": _recurrent, "lrn": _lrn, "lstm": _recurrent,
    "matmul": _dense, "max": _reduction, "max_pool2d": _pool, "mean": _reduction,
    "min": _reduction, "peephole_lstm": _recurrent, "prod": _reduction, "resize2d": _resized,
    "rnn": _recurrent, "sum": _reduction, "variance": _reduction,
}  # fmt: skip
PRODUCTS = tuple(
    kind for kind, count in _FLOPS.items()
    if count in (_convolution, _transposed, _dense, _batch_matmul)
)  # fmt: skip


def flops(op: Sizes) -> int:
    """Operations that an op asks for."""
    kind = op.kind.removeprefix("nn.").removeprefix("selfbyoc.")
    if kind in _FLOPS:
        return _FLOPS[kind](op)
    return 0 if kind in MOVES else op.size * _PER_ELEMENT.get(kind, 1)


def moved(op: Sizes, inputs: Sequence[int], outputs: Sequence[int]) -> int:
    """Bytes that it reads and writes, given those of its inputs and outputs: of a table or a
    tensor to slice only what is taken.
    """
    if op.kind in _GATHERS and inputs:
        return 2 * sum(outputs) + sum(inputs[1:])
    return sum(inputs) + sum(outputs)


def item_bytes(dtype: str) -> int:
    """Bytes of one element."""
    bits = _SIZES.get(dtype) or int("".join(c for c in dtype if c.isdigit()) or 32)
    return max(1, bits // 8)


def cost_of(call: OpCall) -> tuple[int, int] | None:
    """Bytes and operations of an op of a graph; None where an extent is not known, or the op is
    not as others of its kind.
    """
    values = (*call.inputs, *call.outputs)
    if not all(value.is_static for value in values):
        return None
    shapes = [[value.shape for value in side] for side in (call.inputs, call.outputs)]
    sizes = [
        [math.prod(v.shape) * item_bytes(v.dtype) for v in side]
        for side in (call.inputs, call.outputs)
    ]
    op = Sizes(call.kind, call.attrs, *cast(Any, shapes))
    try:
        return moved(op, *cast(Any, sizes)), flops(op)
    except (IndexError, KeyError, ValueError):
        return None
