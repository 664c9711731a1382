"""TVM's ONNX frontend of Relax, with ops that it lacks or reads otherwise, and the names of nodes,
which it does not keep.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tvm import relax
from tvm.relax.frontend.onnx import onnx_frontend
from tvm.relax.frontend.onnx.onnx_frontend import ONNXGraphImporter

from ...errors import InputError, SelfbyocError
from ...ir.relax import Constant
from ...ir.relax.register import call_of
from ...ir.relax.symbols import symbols, with_ranges
from ...ir.symbols import Range
from ...ops.kind import OWN
from ...tvm import tir, tvm
from ...tvm.rewrite import substitute
from ...tvm.types import Attrs, Expr, IRModule, PrimExpr
from ..dim_names import as_extents
from ..onnx.branches import resolved
from ..onnx.build import own_attrs, without_own
from ..onnx.checks import told
from ..onnx.expanding import expanded
from ..onnx.forms import readable
from ..onnx.graph import where
from ..onnx.relax import boxes, copied, narrow, shapes
from ..onnx.relax.broadcast import agreed, with_extents
from ..onnx.relax.elements import Known, as_tensor
from ..onnx.relax.known import Knowledge
from ..onnx.relax.shapes import Reading, extents_of
from .algebra import Algebra, Extent
from .branches import branch_of, same_type
from .loop_calls import Functions
from .loops import Scope, loop_of
from .spans import with_spans

if TYPE_CHECKING:
    import onnx

# (builder, inputs, attributes) -> the result; None: what the frontend makes of it is right.
_CONVERTERS = narrow.CONVERTERS
# (Reading, inputs, attributes) -> the same.
_OF_SIZES = {**shapes.CONVERTERS, **copied.CONVERTERS, **boxes.CONVERTERS}
_ROUNDS = 4  # a bound of one size may tell that of another


# It prints what it cannot convert, beside the error.
vars(onnx_frontend)["print"] = lambda *texts: None


def known_ops() -> frozenset[str]:
    """The ops that there is a converter of."""
    return frozenset(onnx_frontend._get_convert_map()) | frozenset(_CONVERTERS) | {"If", "Loop"}


def imported(
    model: onnx.ModelProto, most: Mapping[str, int], loops: Functions | None = None
) -> IRModule:
    """An ONNX model as an IRModule, its weights as constants; `most` are the largest sizes of
    symbols that somebody promises. `loops`: functions of the model that it is a part of.
    """
    opsets = {each.domain: each.version for each in model.opset_import}
    opset = opsets.get("", opsets.get("ai.onnx", 1))
    # Of its own, the frontend takes every name with a dash for a difference.
    shapes = as_extents(model, functools.cache(lambda name: tir.Var(name, "int64")))
    bounds, by = dict(most), dict[str, str]()
    for _ in range(_ROUNDS):
        importer = _Importer(shapes, "float32", keep_params_in_input=False)
        algebra = Algebra(bounds, _variables(shapes), by)
        importer.names = {}
        importer.knowledge, importer.loops = Knowledge(model, algebra), loops or Functions()
        mod = importer.from_onnx(model.graph, opset)
        if algebra.bounds == bounds and not algebra.equal:
            break
        bounds = algebra.bounds
        shapes = {name: [_of(e, algebra.equal) for e in axes] for name, axes in shapes.items()}
    mod = with_spans(mod, importer.names)
    for name, func in importer.loops.of.items():
        mod[name] = func
    mod = relax.transform.DeadCodeElimination(["main"])(mod)
    main = mod["main"]
    limited = (name for name in {**bounds, **algebra.floors} if name in symbols(main))
    known = {n: Range(algebra.floors.get(n, 0), bounds.get(n)) for n in limited}
    told = {name: by[name] for name in known if name in by}
    mod["main"] = with_ranges(main, known, told)
    return mod


def _variables(shapes: Mapping[str, Sequence[PrimExpr]]) -> list[Expr]:
    every = (extent for axes in shapes.values() for extent in axes)
    return list(dict.fromkeys(extent for extent in every if isinstance(extent, tir.Var)))


def _of(extent: PrimExpr, equal: Mapping[Expr, PrimExpr]) -> PrimExpr:
    """An input's size with those in place that it has to be equal to."""
    return substitute(extent, dict(equal)) if isinstance(extent, tvm.ir.Node) else extent


class _Importer(ONNXGraphImporter):
    """Notes which node each value is of; one without a name goes by its first output. Ops of this
    library's own stand in the graph under their names in TVM.
    """

    _nodes: dict[str, Any]
    names: dict[Any, str]
    knowledge: Knowledge
    loops: Functions
    _known: Sequence[Known | None] = ()  # of the inputs of the node at hand

    def _construct_nodes(self, graph: onnx.GraphProto) -> None:
        told = {out: node.name or node.output[0] for node in graph.node for out in node.output}
        noted = _Noted(self._nodes, told, self.names)
        self._nodes = noted
        for node in graph.node:
            self.knowledge.algebra.node = f"{node.op_type} {node.name or node.output[0]}"
            if node.op_type == "If":
                self._choose(node)
                continue
            if self.knowledge.learn(node, self._extents):
                for name in filter(None, node.output):
                    self._nodes[name] = as_tensor(self.bb, self.knowledge.of[name])
                continue
            self._known = self.knowledge.inputs(node)
            super()._construct_nodes(SimpleNamespace(node=[node]))

    def _choose(self, node: onnx.NodeProto) -> None:
        """An If, whose branches are functions."""
        graphs = self._parse_attr(node.attribute)
        sides = [self._branch(graphs[name]) for name in ("then_branch", "else_branch")]
        same_type(where("If", node.name), node.output, [result.ty for _, result in sides])
        given = [x for x in self._inputs.values() if isinstance(x, relax.Var)]
        results = [branch_of(self.loops, *side, given) for side in sides]
        condition = self._nodes[node.input[0]]
        if condition.ty.ndim:
            condition = self.bb.emit(relax.op.reshape(condition, relax.ShapeExpr([])))
        parts = [relax.SeqExpr([], result) for result in results]
        chosen = self.bb.emit(relax.If(condition, *parts))
        for n, name in enumerate(node.output):
            one = chosen if len(node.output) == 1 else self.bb.emit(relax.TupleGetItem(chosen, n))
            if name:
                self._nodes[name] = with_extents(self.bb, one)

    def _branch(self, graph: onnx.GraphProto) -> tuple[relax.BindingBlock, Expr]:
        """What a branch computes, and its result or the tuple of them. What is known and asked of
        sizes there holds there alone.
        """
        outside, known, algebra = self._nodes, self.knowledge.of, self.knowledge.algebra
        is_certain, node = algebra.is_certain, algebra.node
        self.knowledge.of, algebra.is_certain = dict(known), False
        self.bb._begin_binding_block()
        for tensor in graph.initializer:
            self.knowledge.note(tensor)
        own = {t.name: relax.const(self._parse_array(t)) for t in graph.initializer}
        self._nodes = {**outside, **own}
        self._construct_nodes(graph)
        results = [self._bound(self._nodes[value.name]) for value in graph.output]
        result = self.bb.normalize(results[0] if len(results) == 1 else relax.Tuple(results))
        self._nodes, self.knowledge.of = outside, known
        algebra.is_certain, algebra.node = is_certain, node
        return self.bb._end_block(), result

    def _bound(self, x: Expr) -> Expr:
        """The frontend leaves some calls to whoever reads them: those would stay in the If, whose
        memory TVM's plan takes for that of both branches (SIGSEGV).
        """
        return x if isinstance(x, (relax.Var, Constant)) else self.bb.emit(x)

    def _extents(self, name: str) -> Sequence[Extent] | None:
        x = self._nodes[name]
        return extents_of(x) if isinstance(x.ty, relax.TensorType) else None

    def _check_for_unsupported_ops(self, graph: onnx.GraphProto) -> None:
        missing = sorted({node.op_type for node in without_own(graph).node} - known_ops())
        if missing:
            raise InputError(f"TVM's frontend does not have {', '.join(missing)}")

    def _convert_operator(
        self, op_name: str, inputs: Sequence[Expr], attrs: Attrs, opset: int
    ) -> Expr:
        try:
            return with_extents(self.bb, self._converted(op_name, inputs, attrs, opset))
        except SelfbyocError:
            raise
        except Exception as err:  # the frontend's: of any kind
            raise InputError(told(op_name, attrs["tvm_custom"]["name"], err)) from err

    def _converted(self, op_name: str, inputs: Sequence[Expr], attrs: Attrs, opset: int) -> Expr:
        if op_name.startswith(OWN):
            own = own_attrs(op_name, attrs)
            return self.bb.emit(call_of(op_name, list(inputs), own, is_list=False))
        algebra = self.knowledge.algebra
        if op_name == "Loop":
            return self._loop(inputs, attrs)
        inputs = agreed(self.bb, algebra, op_name, inputs, attrs)
        found = None
        if op_name in _OF_SIZES:
            at = Reading(self.bb, algebra, self._known)
            found = _OF_SIZES[op_name](at, inputs, attrs)
        elif op_name in _CONVERTERS:
            found = _CONVERTERS[op_name](self.bb, inputs, attrs)
        if found is None:
            return super()._convert_operator(op_name, inputs, attrs, opset)
        return self.bb.normalize(found)

    def _loop(self, inputs: Sequence[Expr], attrs: Attrs) -> Expr:
        model = self.knowledge.model

        def body(inner: onnx.ModelProto) -> IRModule:
            whole = expanded(resolved(inner), known_ops())
            return imported(
                readable(whole, f"Loop {attrs['tvm_custom']['name']!r}"), {}, self.loops
            )

        scope = Scope(
            self.bb, self.knowledge.algebra, self._nodes, model.opset_import, body, self.loops
        )
        count = self._known[0] if self._known else None
        return loop_of(scope, inputs, attrs, None if count is None else count.elements.flat[0])


class _Noted(dict[str, Any]):
    """The importer's values by name; `of` has the nodes by value."""

    def __init__(
        self, known: Mapping[str, Expr], told: Mapping[str, str], of: dict[Any, str]
    ) -> None:
        super().__init__(known)
        self.told, self.of = told, of

    def __setitem__(self, name: str, value: Expr) -> None:
        super().__setitem__(name, value)
        if name in self.told and isinstance(value, relax.Expr):
            self.of.setdefault(value, self.told[name])
