"""TVM's ONNX frontend of 0.17, and what it loses: clips of one limit, and large numbers."""

from __future__ import annotations

import warnings
from typing import Any

from tvm import relay
from tvm.relay.dataflow_pattern import DFPatternCallback, is_constant, is_op, rewrite, wildcard
from tvm.relay.frontend.onnx import GraphProto

from ...errors import InputError
from ...ir.relay.register import call_of
from ...ir.relay.walk import postorder
from ...ops.kind import OWN
from ..onnx.build import own_attrs, without_own


def imported(model: Any) -> Any:
    """An ONNX model as an IRModule, its weights as constants."""
    with warnings.catch_warnings():
        # Of a reduction's axes, which are an attribute again (models/onnx/forms.py).
        warnings.filterwarnings("ignore", "Unrecognized attribute: axes")
        mod = _imported(_without_half_clips(model))
    mod["main"] = rewrite([_LogOfSoftmax(), _LogOfExp()], mod["main"])
    return relay.transform.InferType()(mod)


def _imported(model: Any) -> Any:
    """As `relay.frontend.from_onnx` of frozen weights does it."""
    opsets = {each.domain: each.version for each in model.opset_import}
    importer = _Importer(None, "float32", freeze_params=True, op_type_dict={})
    with importer:
        mod, _ = importer.from_onnx(model.graph, opsets.get("", opsets.get("ai.onnx", 1)))
    mod = relay.transform.DynamicToStatic()(mod)
    for call in filter(_is_call, postorder(mod["main"].body)):
        if getattr(call.op, "name", "") == "reshape":
            _check_sizes(call, -(2**31))
    return mod


def _check_sizes(reshape: Any, least: int) -> None:
    """Raises InputError for sizes of which 0.17 takes the lower 32 bits, -1 for -2^32 - 1, or that
    it takes for signs of its own.
    """
    found = [int(e) for e in getattr(reshape.attrs, "newshape", None) or ()]
    if any(not least <= e < 2**31 for e in found):
        text = f"Reshape: expected sizes of 0 and more in 32 bits, and -1, found {found}"
        raise InputError(text)


class _Importer(GraphProto):
    """Ops of this library's own stand in the graph under their names in TVM."""

    def _check_for_unsupported_ops(self, graph: Any) -> None:
        super()._check_for_unsupported_ops(without_own(graph))

    def _convert_operator(self, op_name: str, inputs: Any, attrs: Any, opset: int) -> Any:
        if not op_name.startswith(OWN):
            found = super()._convert_operator(op_name, inputs, attrs, opset)
            if op_name == "Reshape" and _is_call(found):
                _check_sizes(found, -1)
            return found
        called = call_of(op_name, list(inputs), own_attrs(op_name, attrs), is_list=False)
        count = attrs["tvm_custom"]["num_outputs"]
        return called if count == 1 else relay.expr.TupleWrapper(called, count)


def _without_half_clips(model: Any) -> Any:
    """The frontend drops a Clip of one constant limit: that is a Max, or a Min."""
    import onnx

    if not any(_limits(node) for node in model.graph.node):
        return model
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    for node in changed.graph.node:
        if limits := _limits(node):
            node.op_type = "Max" if node.input[1] else "Min"
            x = node.input[0]
            del node.input[:]
            node.input.extend([x, *limits])
    return changed


def _limits(node: Any) -> list[str]:
    """The limit of a Clip that has one."""
    given = [name for name in node.input[1:] if name]
    return given if node.op_type == "Clip" and len(given) == 1 else []


class _LogOfSoftmax(DFPatternCallback):
    """LogSoftmax, which the frontend writes as what has no logarithm where it vanishes."""

    def __init__(self) -> None:
        super().__init__()
        self.x = wildcard()
        self.softmax = is_op("nn.softmax")(self.x)
        self.pattern = is_op("log")(self.softmax)

    def callback(self, pre: Any, post: Any, node_map: Any) -> Any:
        return relay.nn.log_softmax(node_map[self.x][0], node_map[self.softmax][0].attrs.axis)


class _LogOfExp(DFPatternCallback):
    """Softplus, whose exponential overflows from 89 on."""

    def __init__(self) -> None:
        super().__init__()
        self.x, self.one = wildcard(), is_constant()
        self.pattern = is_op("log")(is_op("add")(is_op("exp")(self.x), self.one))

    def callback(self, pre: Any, post: Any, node_map: Any) -> Any:
        (x,), (one,) = node_map[self.x], node_map[self.one]
        if one.data.shape or float(one.data.numpy()) != 1 or _is_negative(x):
            return post
        small = relay.exp(relay.negative(relay.abs(x)))
        return relay.add(relay.nn.relu(x), relay.log(relay.add(small, one)))


def _is_negative(x: Any) -> bool:
    """As -|x|, which is written here and matches again."""
    ops = [x.op, x.args[0].op] if _is_call(x) and x.args and _is_call(x.args[0]) else []
    return [str(getattr(op, "name", "")) for op in ops] == ["negative", "abs"]


def _is_call(x: Any) -> bool:
    return isinstance(x, relay.Call)
