"""A mutant: an ONNX model with fixed sizes, and what its inputs are made from."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ....analysis.verify.inputs import arrays
from ....common.optional import extra
from ....graph import OpGraph, Value

if TYPE_CHECKING:
    import onnx

Array = np.ndarray
KINDS = ("random", "zeros", "negative", "borders")  # of inputs
# Ops that have no meaning below zero.
_POSITIVE = ("Log", "Pow", "Reciprocal", "Sqrt")
Range = tuple[int, int]


@dataclass(frozen=True)
class Mutant:
    """One model of a run. `cut` and `mutations` say how it came to be, until it is made smaller."""

    model: bytes
    ranges: Mapping[str, Range] = field(default_factory=dict)  # of inputs that are integers
    seed: int = 0
    grown: tuple[str, ...] = ()  # the file, the cut, each mutation
    target: str = ""  # built for this one; "": what the run is for
    cut: bytes = b""
    mutations: tuple[tuple[str, int], ...] = ()  # kind and seed
    given: Mapping[str, Array] | None = None  # the inputs of a case that is replayed

    @cached_property
    def proto(self) -> onnx.ModelProto:
        """The model; not to be changed."""
        return extra("onnx").load_from_string(self.model)

    def kinds(self) -> list[str]:
        """The ops, in order."""
        return [node.op_type for node in self.proto.graph.node]

    def to_json(self) -> str:
        """What is to be read of it; the model itself is a file."""
        data = {"seed": self.seed, "grown": self.grown, "ops": self.kinds(), "target": self.target}
        return json.dumps(data)

    def inputs(self, kind: str) -> dict[str, Array]:
        """The arrays for a kind of inputs; a case that is replayed has its own."""
        if self.given is not None:
            return dict(self.given)
        helper, found = extra("onnx").helper, {}
        positive = {n.input[0] for n in self.proto.graph.node if n.op_type in _POSITIVE}
        for value in self.proto.graph.input:
            tensor = value.type.tensor_type
            shape = tuple(d.dim_value for d in tensor.shape.dim)
            dtype = np.dtype(helper.tensor_dtype_to_np_dtype(tensor.elem_type))
            made = self._array(value.name, Value(shape, str(dtype)), kind)
            if value.name in positive:
                made = np.asarray(abs(made) + made.dtype.type(0.1))
            found[value.name] = made
        return found

    def _array(self, name: str, value: Value, kind: str) -> Array:
        seed = zlib.crc32(f"{self.seed} {name}".encode())
        if value.dtype.startswith("float"):
            return np.asarray(arrays(OpGraph((value,), (), ()), {}, kind, seed)[0])
        rng, dtype = np.random.default_rng(seed), np.dtype(value.dtype)
        if dtype.kind == "b":
            return np.asarray(rng.random(value.shape) < 0.5)
        whole = (np.iinfo(dtype).min, np.iinfo(dtype).max) if dtype.itemsize == 1 else (0, 1)
        low, high = self.ranges.get(name, whole)
        return np.asarray(rng.integers(low, high, value.shape, endpoint=True).astype(dtype))
