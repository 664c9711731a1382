"""A workload: one ONNX model that ours and every peer is built from, and how much work it is."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...graph import OpCall, OpGraph
from ...models.from_onnx import from_onnx
from ...models.onnx_model import graph_of
from ...runtime.tolerance import longest_reduction

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True)
class Workload:
    """`group` is what its geometric mean is taken over."""

    name: str
    group: str
    model: Callable[[], Any]  # -> ModelProto; seeded, so always the same
    truth: str = "reference"  # a contender that it is compared with, or one of `reference.py`
    key: str = ""  # of a file: what changes with its contents
    file: str = ""  # that everybody builds; else `model` is written for them
    length: int = 0  # the size of this run, where one is open
    floats: str = ""  # of a model of levels: the workload that it was made of


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


def work_of(model: onnx.ModelProto) -> Work:
    """Counted on the graph that partitioning sees; only convolutions and products count."""
    graph = graph_of(from_onnx(model))
    return Work(sum(map(_flops, graph.ops)), _traffic(graph), longest_reduction(graph))


def counted(model: onnx.ModelProto) -> Work:
    """As `work_of`; nothing of what TVM cannot read, which peers may run all the same."""
    try:
        return work_of(model)
    except Exception:  # by ours, TVM's frontend and its passes; who builds it says what is wrong
        return Work(0, 0)


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
    outer = {v for call in graph.ops for v in call.inputs if graph.producer(v) is None}
    outer.update(graph.outputs)
    return sum(math.prod(_known(v.shape)) * np.dtype(v.dtype).itemsize for v in outer)


def _known(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Nothing is counted for a shape that is not known: it is a shape's own, of a few bytes."""
    return tuple(e or 0 for e in shape)
