"""A graph of ops in NumPy, independent of TVM: what a composite that brings no reference is checked
against.

Floating-point ops compute in float64 and keep it to the end; integer ops compute in the op's own
dtype, so that int8 chains compare bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..graph import OpCall, OpGraph, Value
from ..ops.kind import Array
from ..ops.vocabulary import numpy_of


def evaluate(graph: OpGraph, arrays: Sequence[Array]) -> list[Array]:
    """Interpret a graph op by op on its inputs; floating-point results come as float64."""
    known = all_values(graph, arrays)
    return [known[v] for v in graph.outputs]


def all_values(
    graph: OpGraph,
    arrays: Sequence[Array],
    after: Callable[[Value, Array], Array] = lambda value, array: array,
) -> dict[Value, Array]:
    """Every value of the graph, by its id. `after` may change what an op computed."""
    known = {v: wide(a) for v, a in zip(graph.inputs, arrays, strict=True)}
    for call in graph.ops:
        for value in call.inputs:
            if value not in known and value.scalar is not None:
                known[value] = wide(np.full(value.shape, value.scalar, value.dtype))
        meaning = numpy_of(call.kind, call.name)
        found = meaning(_operands(call, [known[v] for v in call.inputs]), call)
        outputs = found if isinstance(found, list) else [found]
        for value, array in zip(call.outputs, outputs, strict=False):
            known[value] = after(value, array)
    return known


def _operands(call: OpCall, arrays: list[Array]) -> list[Array]:
    """TVM casts what a product multiplies to `out_dtype`: floats lose their fraction before they
    are integers' factors, not after.
    """
    name = call.attrs.get("out_dtype")
    if call.kind in ("requantize", "quantize") or not name:
        return arrays
    if "float" in name:
        return [a.astype(np.float64) for a in arrays]
    return [a.astype(name) if a.dtype.kind == "f" else a for a in arrays]


def wide(array: Array) -> Array:
    """As it is computed with."""
    return array.astype(np.float64) if np.issubdtype(array.dtype, np.floating) else array
