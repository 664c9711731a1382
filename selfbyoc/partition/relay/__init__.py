"""Relay: bind parameters; MergeComposite, AnnotateTarget and PartitionGraph mark the matches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from tvm import relay

from ...graph import OpCall, Value
from ...ir.relay import declared
from ...ir.relay.any import calls_named, named, with_names
from ...ir.relay.hollow import hollow, whole, with_composites
from ...ir.relay.shapes import register as register_shapes
from ...ir.relay.walk import children, postorder, rebuild
from ...ir.symbols import Range
from ...language.match.match import Match
from ...simplify import simplified
from ...tvm import constant_numpy, structural_hash, tensor, tvm
from ...tvm.types import Expr, Function, NDArray, Type
from ..parameters import check_params
from .group import ROOT, Group
from .same import are_one, doubled, one_symbol_each

COMPILER = "tefuse"
register_shapes()


def prepare(mod: tvm.IRModule, params: Mapping[str, NDArray] | None) -> tvm.IRModule:
    """A typed module with the parameters bound as constants. The user's module is not touched."""
    if params:
        check_params(declared(mod["main"]), params)
        func = relay.build_module.bind_params_by_name(mod["main"], _tensors(mod, params))
        mod = _with_functions(mod, {"main": func})
    done = simplified(mod)
    names = named(done["main"], done)
    return _with_functions(done, {"main": with_names(done["main"], names)}) if names else done


def block_of(mod: tvm.IRModule) -> dict[OpCall, int]:
    """Relay has no blocks: a composite may take any ops."""
    return {}


def _tensors(mod: tvm.IRModule, params: Mapping[str, NDArray]) -> dict[str, NDArray]:
    names = {p.name_hint for p in mod["main"].params}
    return {
        k: tensor(v) if isinstance(v, np.ndarray) else v for k, v in params.items() if k in names
    }


def mark(mod: tvm.IRModule, matches: Sequence[Match]) -> tuple[tvm.IRModule, list[Match]]:
    """Typed module and disjoint matches -> module in which each match is an external function, and
    the matches: functions are found by their names here, in whatever order.
    """
    merged = composites_only(mod, matches)
    passes = [
        # Without this, taking a tuple apart would become an external function of its own.
        relay.transform.AnnotateTarget(COMPILER, include_non_call_ops=False),
        relay.transform.PartitionGraph(_model_name(mod), bind_constants=False),
    ]
    empty = _with_functions(merged, {"main": with_composites(merged["main"], _hollow_if_ours)})
    parted = tvm.transform.Sequential(passes)(relay.transform.InferType()(empty))
    external = external_functions(parted).items()
    filled = {name: with_composites(func, whole) for name, func in external}
    done = relay.transform.InferType()(_with_functions(parted, filled))
    symbols = calls_named(done["main"], done).items()
    of_symbols = {name: with_names(done[name], names) for name, names in symbols if names}
    return _with_functions(done, of_symbols), list(matches)


def _hollow_if_ours(func: relay.Function) -> relay.Function:
    """Any other function that main calls stays there, and must not be left hollow."""
    name = str((func.attrs or {}).get("Composite", ""))
    is_ours = name.startswith(f"{COMPILER}.") and not relay.ty.is_dynamic(func.checked_type)
    return hollow(func) if is_ours else func


def _with_functions(mod: tvm.IRModule, functions: Mapping[str, Function]) -> tvm.IRModule:
    done = tvm.IRModule(dict(mod.functions.items()), mod.type_definitions)
    for name, func in functions.items():
        done.update_func(done.get_global_var(name), func)
    return done


def composites_only(mod: tvm.IRModule, matches: Sequence[Match]) -> tvm.IRModule:
    """The module with each match as a call of its composite function, not yet partitioned."""
    groups = [Group(match) for match in matches]
    root_of = {output: group for group in groups for output in group.outputs}
    called: dict[Group, Any] = {}
    new: dict[Any, Any] = {}
    main = mod["main"]

    def inputs(expr: Expr) -> list[Expr]:
        # A group is one step: its outputs need whatever the whole group reads.
        return root_of[expr].leaves if expr in root_of else children(expr)

    for expr in postorder(main.body, inputs=inputs):
        group = root_of.get(expr)
        new[expr] = doubled(expr, new) if group is None else _call_of(group, expr, new, called)
    merged = tvm.IRModule(dict(mod.functions.items()), mod.type_definitions)
    whole = relay.Function(main.params, new[main.body], main.ret_type, main.type_params, main.attrs)
    merged.update_func(merged.get_global_var("main"), whole)
    return relay.transform.InferType()(merged)


def _call_of(group: Group, expr: Expr, new: Mapping[Expr, Expr], called: dict[Group, Expr]) -> Expr:
    """The call of the group's composite, made at the first of its outputs that is reached."""
    if group not in called:
        function = group.composite()
        called[group] = relay.Call(function, [new[leaf] for leaf in group.leaves])
    call = called[group]
    return call if len(group.outputs) == 1 else relay.TupleGetItem(call, group.outputs.index(expr))


def _model_name(mod: tvm.IRModule) -> str:
    """Part of every symbol, so that two exported models load into one process."""
    return f"m{structural_hash(mod['main'], map_free_vars=True) & 0xFFFFFFFFFFFF:012x}"


def external_functions(mod: tvm.IRModule) -> dict[str, Function]:
    """Name -> external function, for those that `tefuse` compiles, in the order of their numbers:
    0.17 lists functions by address.
    """
    found = {
        gv.name_hint: func
        for gv, func in mod.functions.items()
        if isinstance(func, relay.Function)
        and func.attrs
        and func.attrs.get("Compiler") == COMPILER
    }
    return {name: found[name] for name in sorted(found, key=lambda name: (len(name), name))}


def ranges_of(mod: tvm.IRModule, names: set[str]) -> dict[str, dict[str, Range]]:
    """None: Relay's `Any` has no bounds."""
    return {}


def functions_of(mod: tvm.IRModule, matches: Sequence[Match]) -> dict[str, str]:
    """Root op of each match -> the name of its external function, just after marking. Of `y + y`,
    of equal ops, one `y` is left (`doubled`): both have its function.
    """
    found = {
        str(node.op.attrs[ROOT]): name
        for name, func in external_functions(mod).items()
        for node in postorder(func.body)
        if isinstance(node, relay.Call) and isinstance(node.op, relay.Function)
    }
    left = {match.root.name: Group(match).root for match in matches if match.root.name in found}
    for match in (m for m in matches if m.root.name not in found):
        root = Group(match).root
        twin = next(name for name, other in left.items() if are_one(root, other))
        found[match.root.name] = found[twin]
    return found


def constant_args(mod: tvm.IRModule) -> dict[str, list[dict[int, relay.Constant]]]:
    """Function name -> for each of its calls in main, the constant arguments by position."""
    found: dict[str, list[dict[int, relay.Constant]]] = {}
    for expr in postorder(mod["main"].body):
        if isinstance(expr, relay.Call) and isinstance(expr.op, relay.GlobalVar):
            constants = {i: a for i, a in enumerate(expr.args) if isinstance(a, relay.Constant)}
            found.setdefault(expr.op.name_hint, []).append(constants)
    return found


def call_constants(mod: tvm.IRModule) -> dict[str, list[dict[int, np.ndarray]]]:
    """The same as arrays."""
    return {
        name: [{i: constant_numpy(c) for i, c in call.items()} for call in calls]
        for name, calls in constant_args(mod).items()
    }


def take_packed(func: relay.Function, packed: Mapping[int, Value]) -> relay.Function:
    """The external function with some parameters in packed form, each followed by its stand-in."""
    params, new = [], {}
    for position, param in enumerate(func.params):
        if position not in packed:
            params.append(param)
            continue
        value = packed[position]
        fresh = relay.var(param.name_hint, shape=value.shape, dtype=value.dtype)
        params.append(fresh)
        new[param] = _stand_in(fresh, param.checked_type)
    body = relay.bind(func.body, new)
    return relay.Function(params, body, func.ret_type, func.type_params, func.attrs)


def _stand_in(packed: Expr, ty: Type) -> Expr:
    # For the VM, 0.17 writes functions of the shapes of all of this: not of every op it can.
    one = relay.cast(relay.max(packed), ty.dtype)
    return relay.full(one, tuple(int(e) for e in ty.shape), ty.dtype)


def update(
    mod: tvm.IRModule,
    functions: Mapping[str, Function],
    packed: Mapping[str, list[dict[int, NDArray]]],
) -> tvm.IRModule:
    """The module with new external functions, and the packed constants in main's calls of them."""
    done = _with_functions(mod, functions)
    new: dict[Any, Any] = {}
    waiting = {name: iter(calls) for name, calls in packed.items()}
    main = mod["main"]
    for expr in postorder(main.body):
        new[expr] = rebuild(expr, new)
        if (
            isinstance(expr, relay.Call)
            and isinstance(expr.op, relay.GlobalVar)
            and expr.op.name_hint in waiting
        ):
            tensors = next(waiting[expr.op.name_hint])
            args = [
                relay.const(tensors[i]) if i in tensors else a for i, a in enumerate(new[expr].args)
            ]
            new[expr] = relay.Call(expr.op, args, expr.attrs, expr.type_args, expr.span)
    whole = relay.Function(main.params, new[main.body], main.ret_type, main.type_params, main.attrs)
    done.update_func(done.get_global_var("main"), whole)
    done = relay.transform.InferType()(one_symbol_each(done, external_functions(done)))
    for name, value in (mod.attrs or {}).items():
        done = done.with_attr(name, value)
    return done
