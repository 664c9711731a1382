"""TVM's ONNX frontend of Relax, and the names of nodes, which it does not keep."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm import relax
from tvm.relax.frontend.onnx.onnx_frontend import ONNXGraphImporter

from .._tvm import tir
from ..ir._relax_register import call_of
from ..ops.kind import OWN
from ._relax_spans import with_spans
from .dim_names import as_extents
from .onnx_build import own_attrs, without_own


def imported(model: Any) -> Any:
    """An ONNX model as an IRModule, its weights as constants."""
    opsets = {each.domain: each.version for each in model.opset_import}
    opset = opsets.get("", opsets.get("ai.onnx", 1))
    # Of its own, the frontend takes every name with a dash for a difference.
    shapes = as_extents(model, lambda name: tir.Var(name, "int64"))
    importer = _Importer(shapes, "float32", keep_params_in_input=False)
    mod = importer.from_onnx(model.graph, opset)
    return with_spans(mod, importer.names)


class _Importer(ONNXGraphImporter):
    """Notes which node each value is of; one without a name goes by its first output. Ops of this
    library's own stand in the graph under their names in TVM.
    """

    _nodes: dict[str, Any]
    names: Mapping[Any, str]

    def _construct_nodes(self, graph: Any) -> None:
        told = {out: node.name or node.output[0] for node in graph.node for out in node.output}
        noted = _Noted(self._nodes, told)
        self._nodes, self.names = noted, noted.of
        super()._construct_nodes(graph)

    def _check_for_unsupported_ops(self, graph: Any) -> None:
        super()._check_for_unsupported_ops(without_own(graph))

    def _convert_operator(self, op_name: str, inputs: Any, attrs: Any, opset: int) -> Any:
        if not op_name.startswith(OWN):
            return super()._convert_operator(op_name, inputs, attrs, opset)
        own = own_attrs(op_name, attrs)
        return self.bb.emit(call_of(op_name, list(inputs), own, is_list=False))


class _Noted(dict[str, Any]):
    """The importer's values by name; `of` has the nodes by value."""

    def __init__(self, known: Mapping[str, Any], told: Mapping[str, str]) -> None:
        super().__init__(known)
        self.told, self.of = told, dict[Any, str]()

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        if name in self.told and isinstance(value, relax.Expr):
            self.of.setdefault(value, self.told[name])
