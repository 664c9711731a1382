"""What ONNX Runtime's optimiser writes into files, as the ops that it was made of: FusedConv,
FusedGemm and FusedMatMul; and why the rest of what no frontend of TVM has is refused.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import TYPE_CHECKING

import numpy as np

from ...errors import InputError
from .graph import Graph, attributes, nodes, op_name, refuse_attributes, where
from .steps import Steps

if TYPE_CHECKING:
    import onnx

_RANDOM = frozenset(
    ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
     "RandomUniformLike")
)  # fmt: skip
_HINTS = {
    "ai.onnx.ml": "of this domain TreeEnsemble alone is read; ONNX Runtime runs the others",
    "com.microsoft": "ONNX Runtime's own op: give the model as it was before its optimiser",
}
# Activations by the names of their attributes, in the order of `activation_params`.
_ACTIVATIONS: dict[str, tuple[str, ...]] = {
    "Clip": ("min", "max"), "HardSigmoid": ("alpha", "beta"), "LeakyRelu": ("alpha",), "Relu": (),
    "Sigmoid": (), "Tanh": (),
}  # fmt: skip


def refuse_missing(model: onnx.ModelProto, known: Set[str], name: str) -> None:
    """Raises InputError for a node that draws at random, or that no frontend has, of a domain of
    which there is something to say.
    """
    for node in nodes(model.graph):
        text = "" if node.op_type in known else _HINTS.get(node.domain, "")
        if node.op_type in _RANDOM and node.domain in ("", "ai.onnx"):
            text = "it draws at random, which no library does: take the node out of the model, and "
            text += f"make its result {node.output[0]!r} an input"
        if text:
            raise InputError(f"{name}: {where(op_name(node), node.name)} is not read: {text}")


def _activated(steps: Steps, x: str, kind: str, numbers: Sequence[float]) -> str:
    names = _ACTIVATIONS[kind]
    if kind == "Clip" and steps.graph.opset >= 11:
        return steps("Clip", x, *(np.float32(each) for each in numbers))
    return steps(kind, x, **dict(zip(names, numbers, strict=False)))


def _activation(node: onnx.NodeProto) -> str:
    kind: str = attributes(node).get("activation", b"").decode()
    if kind and kind not in _ACTIVATIONS:
        text = f"expected an activation of {', '.join(_ACTIVATIONS)}, found {kind!r}"
        raise InputError(f"{where(node.op_type, node.name)}: {text}")
    return kind


def _conv(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto]:
    """A convolution, a summand, an activation."""
    kind, given, steps = _activation(node), attributes(node), Steps(graph, node)
    numbers = list(given.pop("activation_params", []))
    given.pop("activation", None)
    x, w, bias, summand = [*node.input, "", ""][:4]
    found = steps("Conv", x, w, *([bias] if bias else []), **given)
    found = steps("Add", found, summand) if summand else found
    return steps.instead(_activated(steps, found, kind, numbers) if kind else found)


def _gemm(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto]:
    kind, given, steps = _activation(node), attributes(node), Steps(graph, node)
    usual = {"alpha": 0.01 if kind == "LeakyRelu" else 0.2, "beta": 0.5}
    told = {n: given.pop(f"activation_{n}", usual[n]) for n in ("alpha", "beta")}
    given.pop("activation_gamma", None)
    given.pop("activation", None)
    found = steps("Gemm", *node.input, **given)
    numbers = [told[name] for name in _ACTIVATIONS.get(kind, ()) if name in told]
    return steps.instead(_activated(steps, found, kind, numbers) if kind else found)


def _matmul(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """A product of matrices, of which some may be transposed, times a number."""
    refuse_attributes(node, {"transBatchA": (0,), "transBatchB": (0,)})
    given, steps, sides = attributes(node), Steps(graph, node), list[str]()
    for name, side in zip(node.input, "AB", strict=True):
        rank = graph.rank(name)
        if given.get(f"trans{side}", 0) and rank is None:
            return None
        order = [*range((rank or 2) - 2), (rank or 2) - 1, (rank or 2) - 2]
        is_turned = given.get(f"trans{side}", 0) and rank != 1
        sides.append(steps("Transpose", name, perm=order) if is_turned else name)
    found, alpha = steps("MatMul", *sides), given.get("alpha", 1.0)
    if alpha != 1:
        dtype = graph.dtype(node.input[0]) or graph.dtype(node.input[1]) or np.float32
        found = steps("Mul", found, np.asarray(alpha, dtype))
    return steps.instead(found)


FORMS = {
    "com.microsoft.FusedConv": _conv, "com.microsoft.FusedGemm": _gemm,
    "com.microsoft.FusedMatMul": _matmul,
}  # fmt: skip
