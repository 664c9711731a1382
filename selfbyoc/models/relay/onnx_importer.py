"""TVM's ONNX frontend of 0.17, and what it loses: clips of one limit, and large numbers."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tvm import relay
from tvm.relay.dataflow_pattern import DFPatternCallback, is_constant, is_op, rewrite, wildcard
from tvm.relay.frontend.onnx import GraphProto

from ...errors import InputError
from ...ir.relay.register import call_of
from ...ir.relay.walk import postorder
from ...ops.kind import OWN
from ...tvm.types import AttrsNode, DFPattern, Expr, IRModule
from ..onnx.build import own_attrs, without_own

if TYPE_CHECKING:
    import onnx


def imported(model: onnx.ModelProto) -> IRModule:
    """An ONNX model as an IRModule, its weights as constants."""
    with warnings.catch_warnings():
        # Of a reduction's axes, which are an attribute again (models/onnx/forms.py).
        warnings.filterwarnings("ignore", "Unrecognized attribute: axes")
        # It would repeat what has fewer axes.
        warnings.filterwarnings("error", "If statement produced outputs with different rank")
        mod = _imported(_without_half_clips(model))
    mod["main"] = rewrite([_LogOfSoftmax(), _LogOfExp()], mod["main"])
    return relay.transform.InferType()(mod)


def _imported(model: onnx.ModelProto) -> IRModule:
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


def _check_sizes(reshape: Expr, least: int) -> None:
    """Raises InputError for sizes of which 0.17 takes the lower 32 bits, -1 for -2^32 - 1, or that
    it takes for signs of its own.
    """
    found = [int(e) for e in getattr(reshape.attrs, "newshape", None) or ()]
    if any(not least <= e < 2**31 for e in found):
        text = f"Reshape: expected sizes of 0 and more in 32 bits, and -1, found {found}"
        raise InputError(text)


class _Importer(GraphProto):
    """Ops of this library's own stand in the graph under their names in TVM."""

    def _check_for_unsupported_ops(self, graph: onnx.GraphProto) -> None:
        super()._check_for_unsupported_ops(without_own(graph))

    def _convert_operator(
        self, op_name: str, inputs: Sequence[Expr], attrs: AttrsNode, opset: int
    ) -> Expr:
        if not op_name.startswith(OWN):
            found = super()._convert_operator(op_name, inputs, attrs, opset)
            if op_name == "Reshape" and _is_call(found):
                _check_sizes(found, -1)
            return found
        called = call_of(op_name, list(inputs), own_attrs(op_name, attrs), is_list=False)
        count = attrs["tvm_custom"]["num_outputs"]
        return called if count == 1 else relay.expr.TupleWrapper(called, count)


def _without_half_clips(model: onnx.ModelProto) -> onnx.ModelProto:
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


def _limits(node: onnx.NodeProto) -> list[str]:
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

    def callback(self, pre: Expr, post: Expr, node_map: Mapping[DFPattern, Sequence[Expr]]) -> Expr:
        return relay.nn.log_softmax(node_map[self.x][0], node_map[self.softmax][0].attrs.axis)


class _LogOfExp(DFPatternCallback):
    """Softplus, whose exponential overflows from 89 on."""

    def __init__(self) -> None:
        super().__init__()
        self.x, self.one = wildcard(), is_constant()
        self.pattern = is_op("log")(is_op("add")(is_op("exp")(self.x), self.one))

    def callback(self, pre: Expr, post: Expr, node_map: Mapping[DFPattern, Sequence[Expr]]) -> Expr:
        (x,), (one,) = node_map[self.x], node_map[self.one]
        if one.data.shape or float(one.data.numpy()) != 1 or _is_negative(x):
            return post
        small = relay.exp(relay.negative(relay.abs(x)))
        return relay.add(relay.nn.relu(x), relay.log(relay.add(small, one)))


def _is_negative(x: Expr) -> bool:
    """As -|x|, which is written here and matches again."""
    ops = [x.op, x.args[0].op] if _is_call(x) and x.args and _is_call(x.args[0]) else []
    return [str(getattr(op, "name", "")) for op in ops] == ["negative", "abs"]


def _is_call(x: Expr) -> bool:
    return isinstance(x, relay.Call)
