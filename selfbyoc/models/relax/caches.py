"""Relax: the caches of a decoder, written where they lie.

    present = concat(past, new)      past of (1, heads, p, depth), new of (1, heads, n, depth)

is a copy of all that was ever said, for each token. Here a cache is an input of (1, bound, heads,
depth) that the caller keeps, and of which a call writes rows p to p + n; its first p + n rows are
one piece of memory, so that kernels read a view of them. How many are there, p, says an input of p
elements, which nobody reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tvm import relax

from ...errors import InputError
from ...ir.relax.rewrite import rewritten
from ...ir.relax.symbols import ranges, with_ranges
from ...ir.rewriting import Editor, Made
from ...ir.symbols import Range
from ...partition.source_names import names_of, with_names
from ...tvm import tir, tvm
from ...tvm.alignment import any_alignment
from ...tvm.script import T
from ...tvm.types import Expr, Function, IRModule, PrimExpr

PAST = "past"  # the input that says how many tokens were before
_HEADS = (0, 2, 1, 3)  # as a model has them, from rows of all heads, and back


@dataclass(frozen=True)
class Cache:
    """An input of a module that a result of it continues.

    past, present   the parameter, and the call whose result it is
    new             what is put behind it
    result          which result of the module it is
    """

    past: Expr
    present: Expr
    new: Expr
    result: int


def with_caches(mod: IRModule, bound: int) -> IRModule:
    """The module of a decoder whose caches are inputs of `bound` tokens that it writes in place.

    Its inputs are those that are no caches, then `past`, then the caches, of (1, bound, heads,
    depth); its results those that are no caches. Raises InputError where there are none, of a batch
    above 1, and of two lengths.
    """
    mod = relax.transform.EliminateCommonSubexpr()(relax.transform.Normalize()(mod))
    main = mod["main"]
    found = _caches(main)
    length = _length(found)
    past = relax.Var(PAST, relax.TensorType([length], "int8"))
    params = {cache.past: _param(cache, bound) for cache in found}
    mod = _with_functions(mod, params.values())
    append = {cache.present: _Append(mod, params[cache.past], cache, past) for cache in found}

    def in_place(made: Made, to: Editor) -> Expr | None:
        own = append.get(made.call)
        return None if own is None else own.written(made.args[0], to)

    mod = rewritten(rewritten(mod, in_place), _own_view)
    mod = relax.transform.DeadCodeElimination()(mod)
    return _finished(mod, found, params, past, bound)


def _own_view(made: Made, to: Editor) -> Expr | None:
    """A product of a reshape of its own: what others read, no kernel takes in."""
    view = to.made(made.args[0]) if made.kind == "matmul" else None
    if view is None or view.kind != "reshape":
        return None
    return to.again(made, [to.again(view, view.args), *made.args[1:]])


def _caches(main: Function) -> list[Cache]:
    values = {b.var: b.value for block in main.body.blocks for b in block.bindings}

    def value(x: Expr) -> Expr:
        while isinstance(x, relax.Var) and x in values:
            x = values[x]
        return x

    def parts(x: Expr) -> list[Expr]:
        """Of values that are joined along axis 2 of 4; none of anything else."""
        is_joined = isinstance(x, relax.Call) and x.op == tvm.ir.Op.get("relax.concat")
        joined = value(x.args[0]) if is_joined else None
        if not isinstance(joined, relax.Tuple) or x.ty.ndim != 4 or x.attrs.axis is None:
            return []
        return list(joined.fields) if int(x.attrs.axis) % 4 == 2 else []

    def alone(x: Expr) -> Expr:
        """Without a concat of nothing else, as PyTorch writes a cache that is empty at first."""
        only = parts(value(x))
        return alone(only[0]) if len(only) == 1 else value(x)

    results = value(main.body.body)
    fields = results.fields if isinstance(results, relax.Tuple) else [results]
    calls = [value(field) for field in fields]
    pairs = [(n, call, parts(call)) for n, call in enumerate(calls) if len(parts(call)) == 2]
    inputs = list(main.params)
    found = [
        Cache(alone(old), call, new, n) for n, call, (old, new) in pairs if alone(old) in inputs
    ]
    if not found or len(found) == len(fields):
        raise InputError(
            "module: no decoder: expected logits, and results that are each an input of (batch, "
            "heads, past, depth) with more behind it along axis 2"
        )
    return found


def _length(found: Sequence[Cache]) -> PrimExpr:
    """How many tokens were before: the symbol of all caches."""
    names = [str(cache.past.name) for cache in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"module: expected one result for each cache, found several of {twice}")
    batches = {getattr(cache.past.ty.shape.values[0], "value", None) for cache in found}
    if batches != {1}:
        raise InputError(f"module: caches of a batch of 1 are kept, found {found[0].past.ty}")
    lengths = {cache.past.ty.shape.values[2] for cache in found}
    if len(lengths) > 1 or not isinstance(next(iter(lengths)), tir.Var):
        told = sorted(str(length) for length in lengths)
        raise InputError(f"module: expected caches of one open length, found {told}")
    return next(iter(lengths))


def _param(cache: Cache, bound: int) -> Expr:
    _, heads, _, depth = cache.past.ty.shape.values
    ty = relax.TensorType((1, bound, heads, depth), cache.past.ty.dtype)
    return relax.Var(cache.past.name, ty)


class _Append:
    """How one cache is written."""

    def __init__(self, mod: IRModule, param: Expr, cache: Cache, past: Expr) -> None:
        self.gv, self.param, self.past = mod.get_global_var(_name(param)), param, past
        _, heads, _, depth = cache.past.ty.shape.values
        self.shape = (1, cache.present.ty.shape.values[2], heads, depth)

    def written(self, parts: Expr, to: Editor) -> Expr:
        """All that is there, as the model has it, behind what is written."""
        (_, new), cache = to.fields(parts) or (None, None), self.param
        new = to.call("permute_dims", new, _HEADS)
        done = to.call("call_tir_inplace", self.gv, [cache, new, self.past], 0, cache.ty)
        return to.call("permute_dims", to.call("memory.view", done, self.shape), _HEADS)


def _name(param: Expr) -> str:
    _, bound, heads, depth = (int(extent) for extent in param.ty.shape.values)
    return f"append_{bound}_{heads}_{depth}_{param.ty.dtype}"


def _with_functions(mod: IRModule, params: Iterable[Expr]) -> IRModule:
    """The module with a function for each kind of cache."""
    builder = relax.BlockBuilder(mod)
    kinds = {_name(param): param for param in params}
    for name, param in kinds.items():
        _, bound, heads, depth = (int(extent) for extent in param.ty.shape.values)
        builder.add_func(_append(bound, heads, depth, str(param.ty.dtype)), name)
    return builder.finalize()


def _append(bound: int, heads: int, depth: int, dtype: str) -> tir.PrimFunc:
    """Rows of all heads, written behind as many as `past_` has elements."""

    @T.prim_func(private=True, s_tir=True)
    def append(cache_: T.handle, new_: T.handle, past_: T.handle) -> None:  # type: ignore[name-defined]
        count, past = T.int64(), T.int64()
        cache = T.match_buffer(cache_, (1, bound, heads, depth), dtype)
        new = T.match_buffer(new_, (1, count, heads, depth), dtype)
        T.match_buffer(past_, (past,), "int8")
        for row, head in T.grid(count, heads):
            for column in T.vectorized(depth):
                with T.block("append"):
                    r, h, c = T.axis.remap("SSS", [row, head, column])
                    cache[0, past + r, h, c] = new[0, r, h, c]

    # On one thread: a token's rows are written before two have begun.
    known = {"tir.noalias": True, "op_pattern": 8, "tirx.is_scheduled": True}
    return any_alignment(append).with_attr(known)


def _finished(
    mod: IRModule, found: Sequence[Cache], params: Mapping[Any, Any], past: Expr, bound: int
) -> IRModule:
    """The inputs and results that are left, `past` and the caches."""
    main = mod["main"]
    others = [p for p in main.params if not any(p.same_as(cache.past) for cache in found)]
    inputs = [*others, past, *(params[cache.past] for cache in found)]
    func = relax.Function(inputs, *_without_caches(main, found), attrs=main.attrs)
    if left := [str(var.name) for var in relax.analysis.free_vars(func)]:
        text = f"found ops that read {left} besides; a cache is read with what is new behind it"
        raise InputError(f"module: {text}")
    func = with_ranges(
        func, {**ranges(main), str(past.ty.shape.values[0].name): Range(0, bound)}, {}
    )
    done = tvm.IRModule(dict(mod.functions.items()), attrs=mod.attrs)
    done.update_func(done.get_global_var("main"), func)
    names = tuple(str(param.name) for param in inputs)
    return with_names(done, replace(names_of(mod), inputs=names, outputs=()))


def _without_caches(main: Function, found: Sequence[Cache]) -> tuple[Expr, Any]:
    """The body that returns what is no cache, and its type."""
    *blocks, last = main.body.blocks
    *before, final = last.bindings  # of the tuple that is returned
    caches = {cache.result for cache in found}
    fields = [field for n, field in enumerate(final.value.fields) if n not in caches]
    results = relax.Var("results", relax.TupleType([field.ty for field in fields]))
    block = relax.DataflowBlock([*before, relax.VarBinding(results, relax.Tuple(fields))])
    return relax.SeqExpr([*blocks, block], results), results.ty
