"""A program as an ONNX model: each op in one of the spellings that exporters use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...common.optional import extra
from ...errors import UnsupportedOp
from .infer import Type, infer
from .onnx_place import Array, Place, Writer
from .onnx_spelling import WRITE, plain
from .program import CONSTANT, ITEM, Program

if TYPE_CHECKING:
    import onnx

OPSETS = (17, 18)  # up to 17 a reduction's axes are attributes, from 18 on they are an input


def onnx_model(program: Program, given: Mapping[str, Array]) -> onnx.ModelProto:
    """The model; inputs are x0, x1, ... as in the program. Raises UnsupportedOp for an op that
    ONNX does not have.
    """
    writer = Writer(OPSETS[program.seed // 4 % len(OPSETS)])
    types, found = infer(program), []
    leaves = {i: f"x{n}" for n, i in enumerate(program.leaves())}
    for index, node in enumerate(program.nodes):
        if node.is_leaf:
            found.append(leaves[index])
            continue
        place = Place(writer, program, index, found)
        if node.kind == ITEM:
            parts = place.inputs[0]
            found.append(parts[node.attrs["index"]] if isinstance(parts, list) else parts)
            continue
        place.types = [types[i][0] for i in node.inputs]
        place.result = types[index][0]
        write = WRITE.get(node.kind, plain)
        found.append(write(place))
    return _model(writer, program, types, found, given)


def _model(
    writer: Writer,
    program: Program,
    types: Sequence[tuple[Type, ...]],
    found: Sequence[str],
    given: Mapping[str, Array],
) -> onnx.ModelProto:
    onnx = writer.onnx

    def told(name: str, kind: Type) -> Any:
        code = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(kind[1]))
        return onnx.helper.make_tensor_value_info(name, code, kind[0])

    outputs = []
    for n, index in enumerate(program.outputs):
        name = f"y{n}"
        writer.nodes.append(onnx.helper.make_node("Identity", [found[index]], [name]))
        outputs.append(told(name, types[index][0]))
    leaves = [(program.nodes[i], types[i][0], str(found[i])) for i in program.leaves()]
    inputs = [told(name, kind) for node, kind, name in leaves if node.kind != CONSTANT]
    fixed = {name: given[name] for node, _, name in leaves if node.kind == CONSTANT}
    arrays = [
        onnx.numpy_helper.from_array(np.ascontiguousarray(a).reshape(a.shape), name)
        for name, a in {**fixed, **writer.weights}.items()
    ]
    graph = onnx.helper.make_graph(writer.nodes, "g", inputs, outputs, arrays)
    opset = [onnx.helper.make_opsetid("", writer.opset)]
    return onnx.helper.make_model(graph, opset_imports=opset, ir_version=8)


def by_onnx_runtime(model: onnx.ModelProto, inputs: Mapping[str, Array]) -> list[Array]:
    """What ONNX Runtime makes of a model. Raises UnsupportedOp for what it has no kernel of."""
    runtime = extra("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    try:
        session = runtime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        return list(session.run(None, dict(inputs)))
    except Exception as err:  # its own classes of errors, one for each reason
        raise UnsupportedOp(f"ONNX Runtime: {str(err).splitlines()[0]}") from err
