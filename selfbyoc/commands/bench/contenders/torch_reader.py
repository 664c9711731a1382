"""What is known of an ONNX model's values while it is written as a graph of PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ....common.optional import extra

if TYPE_CHECKING:
    import onnx
    import torch


class Reader:
    """Values by their ONNX name: fx nodes, and arrays where a value is constant."""

    def __init__(self, model: onnx.ModelProto) -> None:
        onnx = extra("onnx")
        self.torch: Any = extra("torch")
        self.functional = self.torch.nn.functional
        self.root, self.graph = self.torch.nn.Module(), self.torch.fx.Graph()
        self.arrays = {i.name: onnx.numpy_helper.to_array(i) for i in model.graph.initializer}
        self.opset = max((o.version for o in model.opset_import if not o.domain), default=1)
        names = [i.name for i in model.graph.input if i.name not in self.arrays]
        self.nodes = {n: self.graph.placeholder(f"x{i}") for i, n in enumerate(names)}

    def constant(self, array: np.ndarray) -> torch.fx.Node:
        name = f"constant_{len(dict(self.root.named_buffers()))}"
        self.root.register_buffer(name, self.torch.from_numpy(array.copy()))
        return self.graph.get_attr(name)

    def node(self, name: str) -> torch.fx.Node:
        """An fx node of any value; a constant of one element is a number."""
        if name not in self.nodes:
            array = self.arrays[name]
            self.nodes[name] = array.item() if array.ndim == 0 else self.constant(array)
        return self.nodes[name]

    def call(
        self, function: Callable[..., object], *args: object, **options: object
    ) -> torch.fx.Node:
        return self.graph.call_function(function, args, options)
