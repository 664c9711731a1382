"""TVM's ONNX frontend of Relax, with ops that it lacks or reads otherwise, and the names of nodes,
which it does not keep.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from tvm import relax
from tvm.relax.frontend.onnx import onnx_frontend
from tvm.relax.frontend.onnx.onnx_frontend import ONNXGraphImporter

from .._tvm import tir
from ..errors import InputError, SelfbyocError
from ..ir._relax_register import call_of
from ..ops.kind import OWN
from ._relax_spans import with_spans
from .dim_names import as_extents
from .onnx import _relax_narrow, _relax_shapes
from .onnx.build import own_attrs, without_own
from .onnx.checks import told

# (builder, inputs, attributes) -> the result; None: what the frontend makes of it is right.
_CONVERTERS = {**_relax_narrow.CONVERTERS, **_relax_shapes.CONVERTERS}
# Ops that the frontend takes shapes for; others get tensors.
_TAKE_SHAPES = frozenset(
    ("Reshape", "Resize", "ConstantOfShape", "Gather", "Slice", "Shape", "Expand", "Concat",
     "Equal", "Where", "Cast", "CastLike", "Squeeze")
)  # fmt: skip


# It prints what it cannot convert, beside the error.
vars(onnx_frontend)["print"] = lambda *texts: None


def known_ops() -> frozenset[str]:
    """The ops that there is a converter of."""
    return frozenset(onnx_frontend._get_convert_map()) | frozenset(_CONVERTERS) | {"If"}


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
        for node in graph.node:
            with self._as_tensors(node):
                super()._construct_nodes(SimpleNamespace(node=[node]))

    @contextmanager
    def _as_tensors(self, node: Any) -> Iterator[None]:
        """Sizes that a node reads, as the tensor of integers that they are in ONNX; the frontend
        raises for ops that do not expect a shape.
        """
        shapes = {
            name: self._nodes[name]
            for name in node.input
            if node.op_type not in _TAKE_SHAPES and _is_shape(self._nodes.get(name))
        }
        for name, shape in shapes.items():
            dict.__setitem__(self._nodes, name, _as_tensor(self.bb, shape))
        try:
            yield
        finally:
            for name, shape in shapes.items():
                dict.__setitem__(self._nodes, name, shape)

    def _check_for_unsupported_ops(self, graph: Any) -> None:
        missing = sorted({node.op_type for node in without_own(graph).node} - known_ops())
        if missing:
            raise InputError(f"TVM's frontend does not have {', '.join(missing)}")

    def _convert_operator(
        self, op_name: str, inputs: Sequence[Any], attrs: dict[str, Any], opset: int
    ) -> Any:
        if op_name.startswith(OWN):
            own = own_attrs(op_name, attrs)
            return self.bb.emit(call_of(op_name, list(inputs), own, is_list=False))
        convert = _CONVERTERS.get(op_name)
        try:
            found = convert(self.bb, inputs, attrs) if convert is not None else None
            if found is None:
                return super()._convert_operator(op_name, inputs, attrs, opset)
            return self.bb.normalize(found)
        except SelfbyocError:
            raise
        except Exception as err:  # the frontend's: of any kind
            raise InputError(told(op_name, attrs["tvm_custom"]["name"], err)) from err


class _Noted(dict[str, Any]):
    """The importer's values by name; `of` has the nodes by value."""

    def __init__(self, known: Mapping[str, Any], told: Mapping[str, str]) -> None:
        super().__init__(known)
        self.told, self.of = told, dict[Any, str]()

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        if name in self.told and isinstance(value, relax.Expr):
            self.of.setdefault(value, self.told[name])


def _is_shape(value: Any) -> bool:
    return isinstance(value, relax.Expr) and isinstance(value.ty, relax.ShapeType)


def _as_tensor(builder: Any, shape: Any) -> Any:
    if isinstance(shape, relax.ShapeExpr) and all(isinstance(e, tir.IntImm) for e in shape):
        return relax.const([int(e) for e in shape], "int64")
    return builder.emit(relax.op.shape_to_tensor(shape))
