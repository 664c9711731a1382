"""Other values of the attributes of ONNX's ops."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ....common.optional import extra
from ....models.onnx.graph import Graph, attributes

if TYPE_CHECKING:
    import onnx

T = TypeVar("T")

_REDUCING = (
    "ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum", "ReduceProd", "ReduceL1", "ReduceL2",
    "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare",
)  # fmt: skip


class Place:
    """A node, for the function that draws one of its attributes."""

    def __init__(self, graph: Graph, node: onnx.NodeProto, rng: Random) -> None:
        self.graph, self.node, self.rng, self.attrs = graph, node, rng, attributes(node)
        self.rank = graph.rank(node.input[0]) or 0

    def spatial(self) -> int:
        """How many axes a window has."""
        return max(0, self.rank - 2)

    def kernel(self) -> list[int]:
        """The extents of the window."""
        known = self.attrs.get("kernel_shape")
        shape = self.graph.shape(self.node.input[1]) if len(self.node.input) > 1 else None
        return list(known or (shape[2:] if shape else [1] * self.spatial()))


def _pads(p: Place) -> list[int]:
    ends = p.kernel() * 2  # a window within the padding alone has no meaning
    return [p.rng.randrange(k) if p.rng.random() < 0.7 else 0 for k in ends]


def _steps(p: Place) -> list[int]:
    return [p.rng.choice((1, 1, 2, 3)) for _ in range(p.spatial())]


def _axis(p: Place) -> int:
    return p.rng.randrange(-p.rank, p.rank) if p.rank else 0


def _perm(p: Place) -> list[int]:
    return p.rng.sample(range(p.rank), p.rank)


def _axes(p: Place) -> list[int]:
    return sorted(p.rng.sample(range(p.rank), p.rng.randint(1, p.rank))) if p.rank else []


def _kernel(p: Place) -> list[int]:
    return [p.rng.choice((1, 2, 3, 5)) for _ in range(p.spatial())]


def _number(p: Place) -> float:
    return p.rng.choice((0.0, 0.01, 0.2, 0.5, 1.0, 1.702, -0.3))


def _epsilon(p: Place) -> float:
    return p.rng.choice((1e-6, 1e-5, 1e-3, 1e-2, 1.0))


def _one_of(*values: T) -> Callable[[Place], T]:
    return lambda p: p.rng.choice(values)


_SWITCH = _one_of(0, 1)
_NORMS = ("BatchNormalization", "InstanceNormalization", "LayerNormalization", "GroupNormalization")
_MODES = ("nearest", "linear", "cubic")
_PLACES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")
Drawn = Mapping[str, Callable[[Place], Any]]
_POOL: Drawn = {
    "strides": _steps, "pads": _pads, "kernel_shape": _kernel, "ceil_mode": _SWITCH,
    "dilations": _steps,
}  # fmt: skip
_CONV: Drawn = {"strides": _steps, "pads": _pads, "dilations": _steps}
_ARG: Drawn = {"keepdims": _SWITCH, "axis": _axis, "select_last_index": _SWITCH}
_ALONG: Drawn = {"axis": _axis}
_ALPHA: Drawn = {"alpha": _number}
_STEP: Drawn = {"direction": _one_of("forward", "reverse"), "clip": _one_of(0.5, 3.0)}
DRAWS: Mapping[str, Drawn] = {
    **{op: {"keepdims": _SWITCH, "axes": _axes} for op in _REDUCING},
    **{op: {"epsilon": _epsilon} for op in _NORMS},
    "Conv": _CONV, "ConvTranspose": _CONV, "ConvInteger": _CONV,
    "MaxPool": _POOL, "AveragePool": {**_POOL, "count_include_pad": _SWITCH},
    "LpPool": {**_POOL, "p": _one_of(1, 2, 3)},
    "ArgMax": _ARG, "ArgMin": _ARG,
    "Concat": _ALONG, "Softmax": _ALONG, "LogSoftmax": _ALONG, "Hardmax": _ALONG,
    "Flatten": _ALONG, "Gather": _ALONG, "GatherElements": _ALONG, "Split": _ALONG,
    "QuantizeLinear": _ALONG, "DequantizeLinear": _ALONG,
    "LpNormalization": {"axis": _axis, "p": _one_of(1, 2)},
    "TopK": {"axis": _axis, "largest": _SWITCH},
    "CumSum": {"exclusive": _SWITCH, "reverse": _SWITCH},
    "Gemm": {"transA": _SWITCH, "transB": _SWITCH, "alpha": _number, "beta": _number},
    "Transpose": {"perm": _perm},
    "LeakyRelu": _ALPHA, "Elu": _ALPHA, "ThresholdedRelu": _ALPHA,
    "HardSigmoid": {"alpha": _number, "beta": _number},
    "Clip": {"min": _number, "max": _one_of(0.5, 3.0, 6.0)},
    "Resize": {"mode": _one_of(*_MODES), "coordinate_transformation_mode": _one_of(*_PLACES),
               "nearest_mode": _one_of("floor", "ceil", "round_prefer_floor", "round_prefer_ceil"),
               "cubic_coeff_a": _one_of(-0.75, -0.5), "exclude_outside": _SWITCH},
    "Upsample": {"mode": _one_of("nearest", "linear")},
    "DepthToSpace": {"mode": _one_of("DCR", "CRD"), "blocksize": _one_of(1, 2, 3)},
    "SpaceToDepth": {"blocksize": _one_of(1, 2, 3)},
    "Pad": {"mode": _one_of("constant", "reflect", "edge", "wrap")},
    "Gelu": {"approximate": _one_of("none", "tanh")},
    "GRU": {**_STEP, "linear_before_reset": _SWITCH}, "LSTM": _STEP, "RNN": _STEP,
    "LRN": {"alpha": _number, "beta": _number, "size": _one_of(1, 3, 5)},
}  # fmt: skip


def mutate_attribute(graph: Graph, rng: Random) -> str | None:
    """One attribute of one node, also one that it does not give."""
    found = [n for n in graph.graph.node if n.op_type in DRAWS and n.domain in ("", "ai.onnx")]
    if not found:
        return None
    place = Place(graph, rng.choice(found), rng)
    known = _known(place)
    name = rng.choice(known) if known else ""
    if not name:
        return None
    value = DRAWS[place.node.op_type][name](place)
    if value in ([], place.attrs.get(name)):
        return None
    if name == "pads":
        place.attrs.pop("auto_pad", None)
    if name.startswith("trans") and not _turned(place, name):
        return None
    set_attributes(place.node, {**place.attrs, name: value})
    return f"{place.node.op_type} {name}={value}"


def _known(place: Place) -> list[str]:
    """Of this opset: before 11 limits of a Clip are attributes, then inputs."""
    has = schema(place.node.op_type, place.graph.opset)
    return [name for name in DRAWS[place.node.op_type] if name in has]


def schema(op: str, opset: int) -> set[str]:
    """The attributes of an op of ONNX's; none of one that this opset does not have."""
    try:
        return set(extra("onnx").defs.get_schema(op, opset).attributes)
    except extra("onnx").defs.SchemaError:
        return set()


def set_attributes(node: onnx.NodeProto, attrs: Mapping[str, object]) -> None:
    """All attributes of a node anew."""
    make = extra("onnx").helper.make_attribute
    del node.attribute[:]
    node.attribute.extend(make(name, value) for name, value in attrs.items())


def _turned(place: Place, name: str) -> bool:
    """Transpose the constant that the attribute is about, if it is one: the product stays valid."""
    weight = place.node.input[0 if name == "transA" else 1]
    array = place.graph.constant(weight)
    if array is not None and array.ndim == 2:
        place.node.input[0 if name == "transA" else 1] = place.graph.add(
            np.ascontiguousarray(array.T)
        )
    return True


def mutate_group(graph: Graph, rng: Random) -> str | None:
    """Another number of groups of a convolution, with the part of its weight that is left."""
    found = [
        (n, weight)
        for n in graph.graph.node
        if n.op_type == "Conv" and (weight := graph.constant(n.input[1])) is not None
    ]
    if not found:
        return None
    node, weight = rng.choice(found)
    attrs = attributes(node)
    group = attrs.get("group", 1)
    channels = weight.shape[1] * group
    fits = [g for g in range(1, channels + 1) if channels % g == 0 == weight.shape[0] % g]
    others = [g for g in fits if g != group]
    if not others:
        return None
    new = rng.choice(others)
    places = np.arange(channels // new) % weight.shape[1]
    node.input[1] = graph.add(np.take(weight, places, 1))
    set_attributes(node, {**attrs, "group": new})
    return f"Conv group={new}"
