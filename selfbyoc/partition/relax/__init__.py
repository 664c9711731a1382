"""Relax: bind parameters, mark the chosen matches with FuseOpsByPattern."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from tvm import relax

from ...errors import InputError
from ...graph import Value
from ...ir.relax import Constant, parameters
from ...language.match.match import Match
from ...simplify import simplified
from ...simplify.relax import main_by
from ...simplify.relax.exprs import steps_of
from ...tvm import constant_numpy, tvm
from ...tvm.types import Expr, Function, NDArray, Type
from ..parameters import check_params
from .items import ItemsAreCalls, WithoutItemCalls
from .name import model_name
from .ranges import ranges_of as ranges_of
from .scalars import one_for_each_scalar
from .shapes import takes_shapes, with_extents_alone, with_shapes_inside
from .shapes import tensors as shapes_aside
from .table import SaysItsOps, fusion_table

COMPILER = "tefuse"


def prepare(mod: tvm.IRModule, params: Mapping[str, NDArray] | None) -> tvm.IRModule:
    """A normalised module with the parameters bound as constants. The user's module is not
    touched.
    """
    if params:
        known = [p.name for p in mod["main"].params]
        unknown = sorted(set(params) - set(known))
        if unknown:
            raise InputError(f"params: main has no parameters {unknown}; it has {known}")
        check_params(parameters(mod["main"]), params)
        mod = relax.transform.BindParams("main", dict(params))(mod)
    return main_by(ItemsAreCalls(), simplified(relax.transform.Normalize()(mod)))


def without_item_calls(mod: tvm.IRModule) -> tvm.IRModule:
    """The module as it was before `prepare` put identities after items."""
    return main_by(WithoutItemCalls(), mod)


def block_of(mod: tvm.IRModule) -> dict[Expr, int]:
    """In which block of main each bound IR node is: FuseOpsByPattern marks within one only."""
    blocks = enumerate(mod["main"].body.blocks)
    return {b.value: number for number, block in blocks for b in block.bindings}


def mark(mod: tvm.IRModule, matches: Sequence[Match]) -> tuple[tvm.IRModule, list[Match]]:
    """Normalised module and disjoint matches -> each match is an external function, and the matches
    as their calls come in main.
    """
    if not matches:
        return without_item_calls(mod), []
    table = fusion_table(mod, matches)
    fuse = relax.transform.FuseOpsByPattern(
        table.rows, bind_constants=False, annotate_codegen=True, entry_functions=["main"]
    )
    fused = _without_shape_arguments(without_item_calls(fuse(table.mod)))
    fused = one_for_each_scalar(fused, external_functions(fused))
    return _unique_symbols(fused, model_name(mod["main"])), table.matches


def _without_shape_arguments(mod: tvm.IRModule) -> tvm.IRModule:
    functions = {n: f for n, f in external_functions(mod).items() if takes_shapes(f)}
    new = {n: with_extents_alone(with_shapes_inside(func)) for n, func in functions.items()}
    return update(mod, new, {}) if new else mod


def _unique_symbols(mod: tvm.IRModule, model: str) -> tvm.IRModule:
    """The model's name in every symbol, so that two exported models load into one process."""
    renamed = mod
    for name, found in external_functions(mod).items():
        func = SaysItsOps(mod).visit_expr(found).with_attr("global_symbol", f"{name}_{model}")
        renamed.update_func(renamed.get_global_var(name), func)
    return renamed


def external_functions(mod: tvm.IRModule) -> dict[str, Function]:
    """Name -> external function, for those that `tefuse` compiles."""
    return {
        gv.name_hint: func
        for gv, func in mod.functions.items()
        if isinstance(func, relax.Function) and func.attrs and func.attrs.get("Codegen") == COMPILER
    }


def _calls(mod: tvm.IRModule) -> list[relax.Call]:
    """Those of main, then those of the steps of loops."""
    functions = (mod["main"], *steps_of(mod).values())
    blocks = (block for func in functions for block in func.body.blocks)
    values = (b.value for block in blocks for b in block.bindings)
    return [v for v in values if isinstance(v, relax.Call) and isinstance(v.op, tvm.ir.GlobalVar)]


def functions_of(mod: tvm.IRModule, matches: Sequence[Match]) -> dict[str, str]:
    """Root op of each match -> the name of its external function, just after marking.

    The matches come in the order of their calls, as `mark` gave them.
    """
    external = external_functions(mod)
    calls = [c.op.name_hint for c in _calls(mod) if c.op.name_hint in external]
    assert len(calls) == len(matches), f"{len(calls)} calls of {len(matches)} matches"
    return {match.root.name: name for match, name in zip(matches, calls, strict=True)}


def constant_args(mod: tvm.IRModule) -> dict[str, list[dict[int, Expr]]]:
    """Function name -> for each of its calls in main, the constant arguments by position."""
    found: dict[str, list[dict[int, Any]]] = {}
    for call in _calls(mod):
        constants = {i: a for i, a in enumerate(call.args) if isinstance(a, Constant)}
        found.setdefault(call.op.name_hint, []).append(constants)
    return found


def call_constants(mod: tvm.IRModule) -> dict[str, list[dict[int, np.ndarray]]]:
    """The same as arrays."""
    return {
        name: [{i: constant_numpy(c) for i, c in call.items()} for call in calls]
        for name, calls in constant_args(mod).items()
    }


def take_packed(func: relax.Function, packed: Mapping[int, Value]) -> relax.Function:
    """The external function with some parameters in packed form, each followed by its stand-in."""
    params = []
    for position, param in enumerate(func.params):
        value = packed.get(position)
        ty = relax.TensorType(value.shape, value.dtype) if value else param.ty
        params.append(relax.Var(param.name, ty))
    builder = relax.BlockBuilder()
    with builder.function("external", params):
        new = {
            old: _stand_in(builder, fresh, old.ty) if position in packed else fresh
            for position, (old, fresh) in enumerate(zip(func.params, params, strict=True))
        }
        result = _replay(builder, func.body, new)
        builder.emit_func_output(result)
    done = builder.get()["external"]
    for name, value in func.attrs.items():
        done = done.with_attr(name, value)
    return done


def _stand_in(builder: relax.BlockBuilder, packed: relax.Var, ty: Type) -> relax.Var:
    shape = [int(e) for e in ty.shape.values]
    flat = builder.emit(relax.op.reshape(packed, (-1,)))
    first = builder.emit(relax.op.strided_slice(flat, axes=[0], begin=[0], end=[1]))
    cast = builder.emit(relax.op.astype(first, ty.dtype))
    one = builder.emit(relax.op.reshape(cast, [1] * len(shape)))
    return builder.emit(relax.op.broadcast_to(one, shape))


def _replay(builder: relax.BlockBuilder, body: relax.SeqExpr, new: dict[Expr, Expr]) -> Expr:
    """The bindings of an external function (a local composite and its call) over new parameters."""
    for block in body.blocks:
        for binding in block.bindings:
            value = binding.value
            if isinstance(value, relax.Call):
                args = [new.get(a, a) for a in value.args]
                value = relax.Call(new.get(value.op, value.op), args, value.attrs)
            new[binding.var] = builder.emit(value)
    return new.get(body.body, body.body)


def update(
    mod: tvm.IRModule,
    functions: Mapping[str, Function],
    packed: Mapping[str, list[dict[int, NDArray]]],
) -> tvm.IRModule:
    """The module with new external functions, and the packed constants in main's calls of them."""
    builder = relax.BlockBuilder(
        tvm.IRModule({gv: f for gv, f in mod.functions.items() if gv.name_hint not in functions})
    )
    # Fresh global variables: the old ones keep the type of the unpacked function.
    fresh = {name: builder.add_func(func, name) for name, func in functions.items()}
    waiting = {name: iter(calls) for name, calls in packed.items()}
    done = builder.get()
    main = _Swap(fresh, waiting).visit_expr(mod["main"])
    done.update_func(done.get_global_var("main"), main)
    for name, value in (mod.attrs or {}).items():
        done = done.with_attr(name, value)
    return done


@relax.expr_functor.mutator
class _Swap(relax.PyExprMutator):
    """Puts the new functions and their packed constants into main's calls, in program order."""

    def __init__(
        self, fresh: Mapping[str, Expr], waiting: Mapping[str, Iterator[dict[int, NDArray]]]
    ) -> None:
        super().__init__()
        self.fresh, self.waiting = fresh, waiting

    def visit_call_(self, call: relax.Call) -> relax.Call:
        if not isinstance(call.op, tvm.ir.GlobalVar) or call.op.name_hint not in self.fresh:
            return super().visit_call_(call)
        name = call.op.name_hint
        tensors = next(self.waiting[name]) if name in self.waiting else {}
        args = [
            relax.const(tensors[i]) if i in tensors else self.visit_expr(a)
            for i, a in enumerate(shapes_aside(call.args))
        ]
        return relax.Call(self.fresh[name], args, call.attrs)
