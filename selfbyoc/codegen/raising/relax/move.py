"""Relax: layouts are planned on PrimFuncs, and the graph is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import relax

from ....errors import RaiseError
from ....ir.relax.emit import emitted
from ....tvm import tir, tvm
from ....tvm.types import Expr, PrimFunc
from ...info.layout_map import LayoutMap
from ...info.op_info import recorded_of
from ..changes import steps
from ..images import Plan, images_in
from ..raising import parameter_maps
from . import called, fields


@tvm.transform.module_pass(opt_level=0, name="MoveLayouts")
class MoveLayouts:
    """PrimFuncs with op info in other layouts, changes of layout around their calls, and none where
    two calls agree. `RaiseOps` makes ops of the result.

    plan  a function of a PrimFunc -> the PrimFunc after `transform_layout` of what it likes, or
          itself; or the layout of every image, "NHWC" or "NCHW16c": a function whose ops have no
          form in it stays. An image is any tensor of four axes that is no weight.

    Raises RaiseError for a parameter in a layout that cannot be read off the function.
    """

    def __init__(self, plan: Plan | str) -> None:
        self.plan = images_in(plan) if isinstance(plan, str) else plan

    def transform_module(self, mod: tvm.IRModule, _: object) -> tvm.IRModule:
        """The pass."""
        planned = {
            var: found
            for var, func in mod.functions.items()
            if isinstance(func, tir.PrimFunc) and recorded_of(func) is not None
            if (found := _planned(var.name_hint, func, self.plan(func))) is not None
        }
        rest = {var: func for var, func in mod.functions.items() if var not in planned}
        builder = relax.BlockBuilder(tvm.IRModule(rest, attrs=mod.attrs))
        # A function's variable has its type: those in new layouts are new ones.
        moved = {
            var.name_hint: (builder.add_func(found.func, var.name_hint), found.maps)
            for var, found in planned.items()
        }
        done = builder.get()
        for var, func in mod.functions.items():
            if isinstance(func, relax.Function):
                new = _Edges(moved).visit_expr(func)
                done.update_func(done.get_global_var(var.name_hint), new)
        passes = (
            relax.transform.CanonicalizeBindings(),
            relax.transform.EliminateCommonSubexpr(),
            relax.transform.DeadCodeElimination(),
        )
        return tvm.transform.Sequential(passes)(done)


@dataclass(frozen=True)
class _Planned:
    """A function in new layouts, and the map of each parameter."""

    func: PrimFunc
    maps: Sequence[LayoutMap]


def _planned(name: str, func: PrimFunc, new: PrimFunc) -> _Planned | None:
    """None: no parameter is in another layout."""
    if new is func:
        return None
    maps = parameter_maps(new)
    for param, layout in enumerate(maps):
        if layout is None:
            raise RaiseError.of(name, f"parameter {param}", "op info cannot follow its new layout")
    return _Planned(new, [layout for layout in maps if layout is not None])


@relax.expr_functor.mutator
class _Edges(relax.PyExprMutator):
    """Calls of functions in new layouts, between changes; what was changed back is read as it was
    before, if that is the layout that is asked for.
    """

    def __init__(self, moved: Mapping[str, tuple[Expr, Sequence[LayoutMap]]]) -> None:
        super().__init__()
        self.moved = moved
        self.before: dict[Any, tuple[Expr, LayoutMap]] = {}

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        """A call with its arguments in the new layouts, and its results in the old ones."""
        call = super().visit_call_(call)
        if called(call) not in self.moved:
            return call
        function, maps = self.moved[called(call)]
        args = [self._changed(a, m) for a, m in zip(fields(call.args[1]), maps, strict=False)]
        types = call.ty.fields if isinstance(call.ty, relax.TupleType) else [call.ty]
        outs = maps[len(args) :]
        shapes = [[_extent(e) for e in ty.shape.values] for ty in types]
        new = [
            relax.TensorType(layout.shape(shape), ty.dtype)
            for ty, shape, layout in zip(types, shapes, outs, strict=True)
        ]
        made = self.builder_.emit(relax.call_tir(function, relax.Tuple(args), new))
        items = [made] if len(new) == 1 else [
            self.builder_.emit(relax.TupleGetItem(made, i)) for i in range(len(new))
        ]  # fmt: skip
        results = [
            self._back(item, shape, layout)
            for item, shape, layout in zip(items, shapes, outs, strict=True)
        ]
        return results[0] if len(results) == 1 else relax.Tuple(results)

    def visit_dataflow_block_(self, block: relax.DataflowBlock) -> relax.DataflowBlock:
        """A block, whose own variables nobody knows after it."""
        done = super().visit_dataflow_block_(block)
        self.before.clear()
        return done

    def visit_tuple_getitem_(self, item: relax.TupleGetItem) -> relax.Expr:
        """An item; the field itself of a tuple that is written out."""
        done = super().visit_tuple_getitem_(item)
        found = self._bound(done.tuple_value) if isinstance(done, relax.TupleGetItem) else None
        return found.fields[done.index] if isinstance(found, relax.Tuple) else done

    def _bound(self, x: Expr) -> Expr:
        """What a variable stands for, as far as it is another variable's."""
        while isinstance(x, relax.Var) and x not in self.before:
            found = self.builder_.lookup_binding(x)
            if not isinstance(found, (relax.Var, relax.Tuple)):
                return x
            x = found
        return x

    def _changed(self, arg: Expr, layout: LayoutMap) -> Expr:
        source, was = self.before.get(self._bound(arg), (arg, None))
        if was == layout:
            return source
        shape = [_extent(e) for e in arg.ty.shape.values]
        return self._change(arg, shape, LayoutMap.identity(len(shape)), layout)

    def _back(self, item: Expr, shape: Sequence[Any], layout: LayoutMap) -> Expr:
        found = self._change(item, shape, layout, LayoutMap.identity(len(shape)))
        if found is not item:
            self.before[found] = (item, layout)
        return found

    def _change(self, x: Expr, shape: Sequence[Any], was: LayoutMap, now: LayoutMap) -> Expr:
        for kind, attrs, _ in steps(shape, was, now):
            x = self.builder_.emit(
                self.builder_.normalize(emitted(self.builder_, kind, [x], attrs))
            )
        return x


def _extent(extent: Any) -> Any:
    return int(extent.value) if isinstance(extent, tir.IntImm) else extent
