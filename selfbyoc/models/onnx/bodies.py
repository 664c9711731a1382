"""The body of a Loop, or a branch of an If, as a model of its own, so that all that is done to a
model is done to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...common.optional import extra
from .graph import nodes

if TYPE_CHECKING:
    import onnx

_IR = 8  # the version of what holds no more than this


@dataclass(frozen=True)
class Given:
    """An input of a body: its name, dtype and sizes, a name for each that is open; None of what
    has no known number of axes.
    """

    name: str
    dtype: str
    sizes: tuple[int | str, ...] | None


def free_names(body: onnx.GraphProto) -> list[str]:
    """What a body reads and does not make: values of the graph around it."""
    own = {value.name for value in (*body.input, *body.initializer)}
    own |= {out for node in nodes(body) for out in node.output}
    for node in nodes(body):
        for inner in (each for a in node.attribute for each in (a.g, *a.graphs)):
            own |= {value.name for value in (*inner.input, *inner.initializer)}
    read = [name for node in nodes(body) for name in node.input]
    read += [value.name for value in body.output]
    return list(dict.fromkeys(name for name in read if name and name not in own))


def as_model(
    body: onnx.GraphProto,
    given: Iterable[Given],
    constants: Mapping[str, np.ndarray],
    opsets: Sequence[onnx.OperatorSetIdProto],
) -> onnx.ModelProto:
    """A body and the constants that it reads around it. What it says of its shapes is forgotten:
    those of its inputs are known better.
    """
    onnx = extra("onnx")
    make, graph = onnx.helper.make_tensor_value_info, onnx.GraphProto(name=body.name or "body")
    graph.node.extend(body.node)
    graph.initializer.extend(body.initializer)
    graph.initializer.extend(onnx.numpy_helper.from_array(a, n) for n, a in constants.items())
    graph.input.extend(make(each.name, _number(each.dtype), each.sizes) for each in given)
    for value in body.output:
        graph.output.append(onnx.ValueInfoProto(name=value.name))
        graph.output[-1].type.CopyFrom(value.type)
        graph.output[-1].type.tensor_type.ClearField("shape")
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=_IR)


def _number(dtype: str) -> int:
    """A dtype as ONNX numbers it; those that NumPy lacks are of ml_dtypes, as onnx has them."""
    import ml_dtypes

    own = getattr(ml_dtypes, dtype, None)
    number = extra("onnx").helper.np_dtype_to_tensor_dtype(np.dtype(own or dtype))
    return int(number)
