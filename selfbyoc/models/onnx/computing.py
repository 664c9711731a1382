"""What depends on constants alone, computed by onnx's own reference, where ONNX Runtime does not
open a model: it has no kernel for some op in that dtype, or does not know the opset yet.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from ...common.optional import extra
from ...ops.elementwise import quotient
from .claims import SMALL, check_claims, elements, grown, is_wide, of_shape
from .graph import Graph, is_of_onnx, remade
from .inference import inferred

if TYPE_CHECKING:
    import onnx

_ROUNDS = 16  # what is computed tells shapes, and shapes can be computed with
NO_CONSTANTS = frozenset(
    ("Bernoulli", "DequantizeLinear", "Multinomial", "RandomNormal", "RandomNormalLike",
     "RandomUniform", "RandomUniformLike")
)  # fmt: skip


def computed(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model without nodes whose results are constants, or shapes that are known; a new one."""
    check_claims(model)
    done = type(model)()
    done.CopyFrom(model)
    for _ in range(_ROUNDS):
        with suppress(ValueError, RuntimeError):  # what follows no rule of onnx's, or has 2 GB
            done = inferred(done)
        if not _one_round(done):
            break
    return done


def _one_round(model: onnx.ModelProto) -> bool:
    """Compute what can be; whether there was something."""
    graph, kept, onnx = Graph(model), list[Any](), extra("onnx")
    known = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer if _is_small(t)}
    returned = {value.name for value in model.graph.output}
    for node in model.graph.node:
        results = None if returned & set(node.output) else _results(node, graph, known, model)
        if results is None:
            kept.append(remade(node))
        known |= {name: r for name, r in zip(node.output, results or (), strict=False) if name}
    found = [n for n in known if n not in {t.name for t in model.graph.initializer}]
    model.graph.initializer.extend(onnx.numpy_helper.from_array(known[n], n) for n in found)
    del model.graph.node[:]
    model.graph.node.extend(kept)
    return bool(found)


def _is_small(tensor: onnx.TensorProto) -> bool:
    is_here = tensor.data_location != extra("onnx").TensorProto.EXTERNAL
    return is_here and int(np.prod(tensor.dims)) <= SMALL


def _results(
    node: onnx.NodeProto, graph: Graph, known: dict[str, np.ndarray], model: onnx.ModelProto
) -> list[np.ndarray] | None:
    """A node's results; None for one that is not computed here."""
    if not is_of_onnx(node) or node.op_type in NO_CONSTANTS:
        return None
    if any(a.HasField("g") or a.graphs for a in node.attribute):
        return None
    shape = graph.shape(node.input[0]) if node.op_type in ("Shape", "Size") else None
    if shape is not None:
        return [of_shape(node, shape)]
    if any(name and name not in known for name in node.input):
        return None
    given = [known[name] for name in node.input if name]
    if node.op_type == "Div" and given[0].dtype.kind in "iu":
        return [quotient(*given)]  # by onnx 1.18 in floats: 2 ** 53 + 1 is not there, nor x / 0
    return by_reference(node, dict(zip(filter(None, node.input), given, strict=True)), model)


def by_reference(
    node: onnx.NodeProto, given: dict[str, np.ndarray], model: onnx.ModelProto
) -> list[np.ndarray] | None:
    """The results of one node for these inputs by name; None where onnx cannot say, or that are
    large.
    """
    onnx = extra("onnx")
    helper = onnx.helper
    if is_wide(node) or elements(grown(node, given, model)) > SMALL:
        return None
    made = helper.make_graph(
        [node], "one", [_any(n) for n in given], [_any(n) for n in node.output]
    )
    one = helper.make_model(made, opset_imports=list(model.opset_import))
    try:
        from onnx.reference import ReferenceEvaluator

        found = ReferenceEvaluator(one).run(None, given)
    except Exception:  # of any kind: it is no constant then, and the frontend says what it lacks
        return None
    arrays = all(isinstance(each, (np.ndarray, np.generic)) for each in found)
    is_large = arrays and sum(np.size(each) for each in found) > SMALL
    return [np.asarray(each) for each in found] if arrays and not is_large else None


def _any(name: str) -> onnx.ValueInfoProto:
    return extra("onnx").helper.make_empty_tensor_value_info(name)
