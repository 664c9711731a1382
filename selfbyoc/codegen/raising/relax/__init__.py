"""Relax: a module whose PrimFuncs have op info, as ops again."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from tvm import relax

from ....errors import RaiseError, UnsupportedOp
from ....graph import OpGraph, Value
from ....ir.graph_program import Symbols, array_of, attrs_of_call
from ....ir.relax.emit import constant, emitted
from ....ops.vocabulary import complete
from ....tvm import tir, tvm
from ....tvm.types import BlockBuilder, Expr
from ...info.op_record import OP_INFO
from ..plain import with_plain_layouts
from ..raising import raise_ops

logger = logging.getLogger(__name__)


@tvm.transform.module_pass(opt_level=0, name="RaiseOps")
class RaiseOps:
    """Calls of PrimFuncs with op info -> the ops that these compute, in the layouts that they have
    now; all other calls stay.

    materialize  as for `selfbyoc.raise_ops`; a function that is refused then stays a PrimFunc
    plain        ops in layouts that TVM has no code for get changes of layout around them
    """

    def __init__(self, *, materialize: bool = True, plain: bool = False) -> None:
        self.materialize, self.plain = materialize, plain

    def transform_module(self, mod: tvm.IRModule, _: object) -> tvm.IRModule:
        """The pass."""
        graphs = {}
        for var, func in mod.functions.items():
            if isinstance(func, tir.PrimFunc) and func.attrs and OP_INFO in func.attrs.keys():  # noqa: SIM118
                graph = self._graph(var.name_hint, func)
                if graph is not None:
                    graphs[var.name_hint] = graph
        done = tvm.IRModule(dict(mod.functions.items()), attrs=mod.attrs)
        for var, func in mod.functions.items():
            if isinstance(func, relax.Function):
                new = Replacing(graphs).visit_expr(func)
                done.update_func(done.get_global_var(var.name_hint), new)
        done = relax.transform.CanonicalizeBindings()(done)
        return relax.transform.DeadCodeElimination()(done)

    def _graph(self, name: str, func: tir.PrimFunc) -> OpGraph | None:
        try:
            graph = raise_ops(func, materialize=self.materialize)
            for call in graph.ops:
                attrs_of_call(call, Symbols())
        except (RaiseError, UnsupportedOp) as err:
            logger.info("%s stays a PrimFunc: %s", name, err)
            return None
        return with_plain_layouts(graph) if self.plain else graph


@relax.expr_functor.mutator
class Replacing(relax.PyExprMutator):
    """Calls of some PrimFuncs as the ops of their graphs."""

    def __init__(self, graphs: dict[str, OpGraph]) -> None:
        super().__init__()
        self.graphs = graphs

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        """A call, or the last of the ops that stand for it."""
        call = super().visit_call_(call)
        graph = self.graphs.get(called(call))
        if graph is None:
            return call
        found = written(self.builder_, graph, fields(call.args[1]))
        return found[0] if len(found) == 1 else relax.Tuple(found)


def called(call: Expr) -> str:
    """The name of the PrimFunc that a `call_tir` calls; else nothing."""
    is_call = isinstance(call, relax.Call) and call.op == tvm.ir.Op.get("relax.call_tir")
    return str(call.args[0].name_hint) if is_call else ""


def fields(arguments: Expr) -> list[Expr]:
    """The tensors that a `call_tir` passes."""
    return list(arguments.fields) if isinstance(arguments, relax.Tuple) else [arguments]


def written(builder: BlockBuilder, graph: OpGraph, args: Sequence[Expr]) -> list[Expr]:
    """A graph's ops, bound in a block under construction -> its results."""
    known: dict[Value, Expr] = dict(zip(graph.inputs, args, strict=True))
    symbols = Symbols(_variables(graph, args))
    for call in graph.ops:
        ins = [known[v] if v in known else constant(array_of(v)) for v in call.inputs]
        attrs = complete(call.kind, attrs_of_call(call, symbols))
        made = builder.emit(builder.normalize(emitted(builder, call.kind, ins, attrs)))
        if len(call.outputs) == 1:
            known[call.outputs[0]] = made
            continue
        for index, value in enumerate(call.outputs):
            known[value] = builder.emit(relax.TupleGetItem(made, index))
    return [known[value] for value in graph.outputs]


def _variables(graph: OpGraph, args: Sequence[Expr]) -> dict[str, Any]:
    """The module's variables by the names that a PrimFunc has for them."""
    found = {}
    for value, arg in zip(graph.inputs, args, strict=True):
        shape = getattr(arg.ty, "shape", None)
        extents = list(shape.values) if isinstance(shape, relax.ShapeExpr) else []
        for name, extent in zip(value.shape, extents, strict=False):
            if isinstance(name, str) and name.isidentifier():
                found[name] = extent
    return found
