"""Products whose weight has few bits in groups: ONNX Runtime's MatMulNBits, and constants that
DequantizeLinear takes in blocks. As `dequantize_groups`, which neither frontend of TVM has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...errors import InputError
from ...ops.few_bits import BITS
from .build import Folding
from .graph import Graph, attributes, nodes

if TYPE_CHECKING:
    import onnx

# ONNX's numbers of dtypes -> bits, and what makes a level of a stored one.
_STORED = {2: (8, 0), 3: (8, 128), 21: (4, 0), 22: (4, 8)}
_LEVELS = 4  # the accuracy level that lets rows be levels of 8 bits, in the groups of the weight
_MULTIPLIES = ("MatMul", "Gemm", "Transpose")


def _matmul(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto]:
    """Raises InputError for weights that are no constants, and for what reorders them."""
    x, packed, scales, zeros, order, bias = [*node.input, *[""] * 6][:6]
    given, steps = attributes(node), Folding(graph, node)
    units, depth, bits, group = (given[name] for name in ("N", "K", "bits", "block_size"))
    if bits not in BITS or order:
        what = f"an order of inputs, {order!r}" if order else f"{bits} bits"
        known = ", ".join(map(str, BITS))
        raise InputError(f"{node.op_type} {node.name!r}: expected {known} bits, found {what}")
    count = -(-depth // group)
    levels = _levels(_known(node, graph, packed).reshape(units, -1), bits)[:, : count * group]
    scale = _known(node, graph, scales).reshape(units, count).astype(np.float32)
    zero = np.full_like(scale, 1 << (bits - 1))
    if zeros:
        stored = _known(node, graph, zeros).reshape(units, -1)
        zero = (_levels(stored, bits) if stored.dtype == np.uint8 else stored)[:, :count]
    arrays = [levels[:, :depth], scale, _short(zero.astype(np.float32))]
    weight = steps.own("dequantize_groups", 1, *map(steps.constant, arrays), bits=bits, group=group)
    dtype = graph.dtype(x)
    is_wide = dtype in (None, np.dtype(np.float32))
    x = x if is_wide else steps.cast(x, np.float32)
    if given.get("accuracy_level", 0) == _LEVELS:
        (x,) = steps.own("fake_quantize_groups", 1, x, group=group)
    y = steps("MatMul", x, steps.transpose(weight[0], (1, 0)))
    if bias:
        y = steps("Add", y, bias if is_wide else steps.cast(bias, np.float32))
    return steps.instead(y if is_wide else steps.cast(y, dtype))


def _short(zero: np.ndarray) -> np.ndarray:
    """Zero points as bytes, where they are levels."""
    levels: np.ndarray = zero.clip(0, 255).astype(np.uint8)
    return levels if (levels == zero).all() else zero


def _known(node: onnx.NodeProto, graph: Graph, name: str) -> np.ndarray:
    found = graph.constant(name)
    if found is None:
        raise InputError(f"{node.op_type} {node.name!r}: {name!r} has to be a constant")
    return found


def _levels(packed: np.ndarray, bits: int) -> np.ndarray:
    """[..., bytes] -> [..., levels], the lowest bits first."""
    places = np.arange(0, 8, bits, dtype=np.uint8)
    found = (packed[..., None] >> places) & np.uint8((1 << bits) - 1)
    return found.reshape(*packed.shape[:-1], -1)


def is_weight(node: onnx.NodeProto, graph: Graph) -> bool:
    """Whether a DequantizeLinear is of a constant in blocks that is multiplied and nothing else."""
    rank, number = graph.rank(node.input[0]), graph.dtype_number(node.input[0])
    if not attributes(node).get("block_size", 0) or rank != 2 or number not in _STORED:
        return False
    users = {user.op_type for user in nodes(graph.graph) if node.output[0] in user.input}
    is_float = graph.dtype(node.input[1]) == np.dtype(np.float32)
    is_known = all(graph.constant(name) is not None for name in node.input if name)
    return is_float and is_known and users <= set(_MULTIPLIES)


def _dequantized(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    if not is_weight(node, graph):
        return None
    given = attributes(node)
    bits, middle = _STORED[graph.dtype_number(node.input[0])]
    group, is_turned = given["block_size"], given.get("axis", 1) % 2 == 0
    stored, *factors = (_known(node, graph, name) for name in node.input if name)
    scale, *zeros = (factor.astype(np.float32) for factor in factors)
    zero = (zeros[0] if zeros else np.zeros_like(scale)) + np.float32(middle)
    levels: np.ndarray = (stored.astype(np.int16) + middle).astype(np.uint8)
    sides = (levels, scale, _short(zero))
    arrays = [np.ascontiguousarray(a.T if is_turned else a) for a in sides]
    steps = Folding(graph, node)
    (found,) = steps.own(
        "dequantize_groups", 1, *map(steps.constant, arrays), bits=bits, group=group
    )
    return steps.instead(steps.transpose(found, (1, 0)) if is_turned else found)


FORMS = {"com.microsoft.MatMulNBits": _matmul, "DequantizeLinear": _dequantized}
