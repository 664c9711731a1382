"""Products whose weight has few bits in groups: ONNX Runtime's MatMulNBits, and constants that
DequantizeLinear takes in blocks. As `dequantize_groups`, which neither frontend of TVM has.

Rows of a table of few bits, GatherBlockQuantized: bytes are gathered, and floats made of those.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...errors import InputError
from ...ops.few_bits import BITS
from .build import Folding
from .graph import Graph, attributes, nodes
from .steps import Value

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
    """Zero points as bytes, where they are levels; one, where all are the same."""
    zero = zero[:1, :1] if (zero == zero[0, 0]).all() else zero
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


def _rows(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """Of bytes [rows, depth * bits / 8] along the first axis, in groups along the last one. Raises
    InputError for others.
    """
    table, places, scales, zeros = [*node.input, ""][:4]
    given, stored, rank = attributes(node), _reshaped(graph, table), graph.rank(places)
    if rank is None:
        return None
    axes = given.get("gather_axis", 0), given.get("quantize_axis", 1) % 2
    if stored is None or stored.ndim != 2 or stored.dtype != np.uint8 or axes != (0, 1):
        kind = "no constant" if stored is None else f"{stored.dtype}{list(stored.shape)}"
        text = f"expected a table of bytes [rows, levels], found {kind}, axes {axes}"
        raise InputError(f"{node.op_type} {node.name!r}: {text}")
    bits, group, count = given.get("bits", 4), given["block_size"], _known(node, graph, scales)
    groups, levels = count.shape[1], stored.shape[1] * 8 // given.get("bits", 4)
    if levels != groups * group:
        text = f"expected whole groups of {group}, found {levels} levels of {groups} groups"
        raise InputError(f"{node.op_type} {node.name!r}: {text}")
    steps, lead = Folding(graph, node), (0,) * rank

    def gathered(name: str) -> str:
        return steps("Gather", name, places, axis=0)

    rows = _floats(steps, gathered(steps.constant(stored)), rank, bits)
    rows = steps.reshape(rows, (*lead, groups, group))
    zero: Value = np.float32(1 << (bits - 1))
    if zeros:
        zero = steps.cut(_floats(steps, gathered(zeros), rank, bits), rank, 0, groups)
        zero = steps.unsqueeze(zero, rank + 1)
    scale = steps.unsqueeze(steps.cast(gathered(scales), np.float32), rank + 1)
    found = steps.reshape(steps("Mul", steps("Sub", rows, zero), scale), (*lead, -1))
    is_wide = count.dtype == np.float32
    return steps.instead(found if is_wide else steps.cast(found, count.dtype))


def _reshaped(graph: Graph, name: str) -> np.ndarray | None:
    """A constant, or one that is reshaped: a table that is the weight of the last product, too."""
    made = graph.makers.get(name)
    if made is None or made.op_type != "Reshape":
        return graph.constant(name)
    stored, shape = (graph.constant(each) for each in made.input[:2])
    return None if stored is None or shape is None else stored.reshape(shape)


def _floats(steps: Folding, stored: str, rank: int, bits: int) -> str:
    """Bytes [..., n] -> levels [..., n * 8 / bits] in float32, the lowest bits first."""
    rest, parts, base = steps.cast(stored, np.float32), list[str](), np.float32(1 << bits)
    for _ in range(8 // bits - 1):
        higher = steps("Floor", steps("Div", rest, base))
        parts.append(steps("Sub", rest, steps("Mul", higher, base)))
        rest = higher
    if not parts:
        return rest
    each = [steps.unsqueeze(part, rank + 1) for part in (*parts, rest)]
    return steps.reshape(steps.concat(each, rank + 1), (*(0,) * rank, -1))


FORMS = {
    "com.microsoft.GatherBlockQuantized": _rows,
    "com.microsoft.MatMulNBits": _matmul,
    "DequantizeLinear": _dequantized,
}
