"""An ONNX model as a torch.fx module: straight Python code, which eager runs and inductor compiles.

Only what the workloads need, each op by the one PyTorch function that a person would write. All
else raises UnsupportedOp: then PyTorch does not take part.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from ....common.optional import extra
from ....errors import UnsupportedOp
from .torch_gelu import join_gelu
from .torch_ops import OPS
from .torch_reader import Reader

if TYPE_CHECKING:
    import onnx
    import torch


def graph_module(model: onnx.ModelProto) -> torch.fx.GraphModule:
    """The module of an ONNX model; it takes the inputs in order and returns a list."""
    onnx, reader = extra("onnx"), Reader(model)
    for node in model.graph.node:
        attrs = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        if node.op_type == "Reshape" and node.input[0] in reader.arrays:  # GoogLeNet's last weight
            array, shape = (reader.arrays[name] for name in node.input)
            reader.arrays[node.output[0]] = array.reshape(shape)
            continue
        if node.op_type == "Constant" and "value" in attrs:
            reader.arrays[node.output[0]] = onnx.numpy_helper.to_array(attrs["value"])
            continue
        if node.op_type not in OPS:
            raise UnsupportedOp(f"{node.op_type} has no function of PyTorch here")
        found = OPS[node.op_type](reader, node.input, attrs)
        if node.op_type == "Split":
            parts = [reader.call(operator.getitem, found, n) for n in range(len(node.output))]
            reader.nodes |= dict(zip(node.output, parts, strict=True))
        else:  # Dropout may have a second result, which nobody reads
            reader.nodes[node.output[0]] = found
    reader.graph.output([reader.nodes[o.name] for o in model.graph.output])
    join_gelu(reader.torch, reader.graph)
    return reader.torch.fx.GraphModule(reader.root, reader.graph)
