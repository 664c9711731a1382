"""What TVM's ONNX frontends would read as something else than ONNX says, node by node: refused.
Found with ONNX's own tests of its ops (docs/onnx.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...errors import one_line
from ...tvm import GENERATION
from . import image_checks
from .graph import Graph, attributes, where
from .nothing import GLOBAL_POOLS, of_nothing
from .scales import of_scales

if TYPE_CHECKING:
    import onnx

IS_RELAY = GENERATION == "relay"
_RAW = (AttributeError, LookupError, TypeError)  # of slips: they say nothing to a user
# Attributes that a frontend does not look at, with the only value that they may have.
_UNREAD: dict[str, dict[str, Any]] = {
    "Resize": {"antialias": 0, "keep_aspect_ratio_policy": b"stretch"},
    "RoiAlign": {"mode": b"avg"},
    "SpaceToDepth": {"mode": b"DCR"},
}
if IS_RELAY:
    _UNREAD["BatchNormalization"] = {"training_mode": 0}
# Inputs that it takes for constants, whether they are or not.
_CONSTANTS: dict[str, tuple[int, ...]] = {"Dropout": (2,)}
if IS_RELAY:  # 0.17 resizes to sizes that are data by corners alone, and forgets the axes
    _CONSTANTS |= {"Resize": (2, 3), "Upsample": (1,)}
# Ops of which only the first result is ONNX's.
_FIRST_ONLY = ("BatchNormalization", "Dropout", "LayerNormalization")


def why_not(node: onnx.NodeProto, graph: Graph) -> str:
    """Why a node would be read as something else; "" where it would not."""
    return next(filter(None, (check(node, graph) for check in _CHECKS)), "")


def _unread(node: onnx.NodeProto, graph: Graph) -> str:
    given, unread = attributes(node), _UNREAD.get(node.op_type, {})
    for key, only in unread.items():
        if given.get(key, only) != only:
            return f"{key} is {_shown(given[key])}, and is taken for {_shown(only)}"
    return ""


def _shown(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _variable(node: onnx.NodeProto, graph: Graph) -> str:
    for n in _CONSTANTS.get(node.op_type, ()):
        if n < len(node.input) and node.input[n] and graph.constant(node.input[n]) is None:
            return f"its input {node.input[n]!r} is no constant"
    return ""


def _second(node: onnx.NodeProto, graph: Graph) -> str:
    used = [name for name in node.output[1:] if name in graph.read]
    if node.op_type not in _FIRST_ONLY or not used:
        return ""
    return f"its result {used[0]!r} is used; only the first is right"


def _training(node: onnx.NodeProto, graph: Graph) -> str:
    if node.op_type != "Dropout" or len(node.input) < 3 or not node.input[2]:
        return ""
    value = graph.constant(node.input[2])
    return "training_mode is true" if value is not None and value.any() else ""


def _empty(node: onnx.NodeProto, graph: Graph) -> str:
    if not node.op_type.startswith("Reduce"):
        return ""
    shape = graph.shape(node.input[0])
    return f"it reduces {list(shape)}, which is empty" if shape and 0 in shape else ""


def _left(node: onnx.NodeProto, graph: Graph) -> str:
    """What forms.py would write otherwise, and could not."""
    given = attributes(node) if node.op_type in ("ConvTranspose", "Gelu") else {}
    if node.op_type == "IsInf" and sum(infinities(node)) != 2:
        return "it looks for infinities of both signs"
    if "output_shape" in given:
        return "output_shape is not looked at"
    if IS_RELAY and given.get("approximate", b"none") != b"none":
        return "approximate is not looked at"
    axes = IS_RELAY and node.op_type.startswith("Reduce") and list(node.input[1:2])
    if axes and axes[0]:
        return f"of the axes {axes[0]!r} only the first counts"
    return "" if IS_RELAY or node.op_type not in ("LpPool", "MaxPool") else _lower(node)


def _lower(node: onnx.NodeProto) -> str:
    given = attributes(node)
    if given.get("auto_pad") != b"SAME_LOWER" or set(given.get("strides", [1])) == {1}:
        return ""
    return "auto_pad is SAME_LOWER, of an image of no known size; onnx.shape_inference may tell it"


def infinities(node: onnx.NodeProto) -> tuple[int, int]:
    """Whether an IsInf looks for inf, and for -inf."""
    given = attributes(node)
    return given.get("detect_positive", 1), given.get("detect_negative", 1)


def _flat(node: onnx.NodeProto, graph: Graph) -> str:
    """Without an image ONNX Runtime pools nothing; TVM returns what is given."""
    rank = graph.rank(node.input[0]) if node.op_type in GLOBAL_POOLS else None
    if rank is None or rank > 2:
        return ""
    return f"its input {node.input[0]!r} has {rank} axes; expected an image, of 3 or more"


def _beyond(node: onnx.NodeProto, graph: Graph) -> str:
    """0.17 reads the last element there."""
    if not IS_RELAY or node.op_type != "Gather":
        return ""
    places, dims = graph.constant(node.input[1]), graph.dims(node.input[0]) or []
    axis = attributes(node).get("axis", 0)
    extent = dims[axis] if -len(dims) <= axis < len(dims) else None
    if places is None or extent is None:
        return ""
    wrong = places[(places < -extent) | (places >= extent)]
    return f"it reads element {wrong.flat[0]} of {extent}" if wrong.size else ""


def _narrow(node: onnx.NodeProto, graph: Graph) -> str:
    """0.17 computes floats of 8 bits and what is of 4 in others, 0.27 rounds them otherwise."""
    values = [name for name in (*node.input, *node.output) if name]
    numbers = {graph.dtype_number(name) for name in values}
    is_cast = node.op_type in ("Cast", "CastLike") and not IS_RELAY
    if is_cast and numbers <= _FLOATS | _EIGHT_BITS:
        return ""
    for name in values:
        if graph.dtype_number(name) > _LAST_OF_NUMPY:
            return f"{name!r} is a float of 8 bits, or of fewer, or 0.17's bfloat16"
    return ""


# In TensorProto.DataType: after bfloat16, whose results 0.17 cannot return, floats of 8 bits.
_LAST_OF_NUMPY = 15 if IS_RELAY else 16
_FLOATS, _EIGHT_BITS = {1, 10, 16}, {17, 18, 19, 20, 24}  # of 32 and 16 bits, and those of 8
EIGHT_BITS = frozenset(
    ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu")
)


def _sorted(node: onnx.NodeProto, graph: Graph) -> str:
    is_large = node.op_type == "TopK" and graph.dtype_number(node.input[0]) == _UINT64
    return "TVM sorts no uint64" if is_large else ""


_UINT64 = 13  # in TensorProto.DataType


def _fourier(node: onnx.NodeProto, graph: Graph) -> str:
    if not IS_RELAY or node.op_type not in ("DFT", "MaxUnpool") or len(node.input) < 3:
        return ""
    return f"its input {node.input[2]!r} is not looked at"


_CHECKS: tuple[Callable[[Any, Graph], str], ...] = (
    _unread, _variable, _second, _training, _empty, _left, _narrow, _fourier, _sorted, _flat,
    _beyond, *image_checks.CHECKS, of_nothing, of_scales,
)  # fmt: skip


def told(op: str, name: str, err: Exception) -> str:
    """What a frontend's own error says of a node, without the class of the error."""
    text = one_line(err).removeprefix(f"{type(err).__name__}").removeprefix(": ")
    text = text.removeprefix("InternalError: ").rstrip(".")
    says_nothing = isinstance(err, _RAW) or " " not in text
    reason = "with these inputs and attributes" if says_nothing else text
    return f"{where(op, name)}: TVM's ONNX frontend does not read it: {reason}"
