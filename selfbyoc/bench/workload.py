"""A workload: one ONNX model that ours and every peer is built from, and how much work it is."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..extra import extra
from ..ir.graph import OpCall, OpGraph
from ..models.onnx_model import graph_of, import_onnx
from ..runtime.tolerance import longest_reduction


@dataclass(frozen=True)
class Workload:
    """`group` is what its geometric mean is taken over."""

    name: str
    group: str
    model: Callable[[], Any]  # -> ModelProto; seeded, so always the same
    truth: str = "reference"  # or the contender that it is compared with


@dataclass(frozen=True)
class Work:
    """What a workload costs at least: floating-point operations of the direct algorithm, and bytes
    of inputs, outputs and weights, each once. `terms` is its longest chain of sums.

    Winograd needs fewer operations: it may show more than the peak.
    """

    flops: int
    bytes: int
    terms: int = 1

    @property
    def intensity(self) -> float:
        """Operations a byte."""
        return self.flops / self.bytes


def work_of(model: Any) -> Work:
    """Counted on the graph that partitioning sees; only convolutions and products count."""
    graph = graph_of(import_onnx(model))
    return Work(sum(map(_flops, graph.ops)), _traffic(graph), longest_reduction(graph))


def _flops(call: OpCall) -> int:
    out = math.prod(_known(call.outputs[0].shape))
    if call.kind == "conv2d":
        layout, weight = call.attrs["kernel_layout"], _known(call.inputs[1].shape)
        return 2 * out * math.prod(weight) // weight[layout.index("O")]
    if call.kind == "dense":
        return 2 * out * _known(call.inputs[1].shape)[-1]
    if call.kind == "batch_matmul":
        return 2 * out * _known(call.inputs[0].shape)[-2 if call.attrs["transpose_a"] else -1]
    return 0


def _traffic(graph: OpGraph) -> int:
    outer = {id(v): v for call in graph.ops for v in call.inputs if graph.producer(v) is None}
    outer |= {id(v): v for v in graph.outputs}
    return sum(math.prod(_known(v.shape)) * np.dtype(v.dtype).itemsize for v in outer.values())


def _known(shape: Any) -> tuple[int, ...]:
    """Nothing is counted for a shape that is not known: it is a shape's own, of a few bytes."""
    return tuple(e or 0 for e in shape)


def inputs_of(model: Any, seed: int = 1) -> dict[str, np.ndarray]:
    """Seeded inputs of a model; integers are ids, small enough for any table."""
    onnx, rng, found = extra("onnx"), np.random.default_rng(seed), {}
    for value in model.graph.input:
        tensor = value.type.tensor_type
        shape = [d.dim_value for d in tensor.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        floats = np.issubdtype(dtype, np.floating)
        values = rng.standard_normal(shape) if floats else rng.integers(0, 1000, shape)
        found[value.name] = np.asarray(values, dtype)
    return found
