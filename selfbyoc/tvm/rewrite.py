"""Rewriting TIR, under one name on both generations: 0.27 maps structures, 0.17 transforms them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from . import GENERATION, SBlock, TensorLoad, dtype_of, tir, tvm, walk
from .types import Attrs, Buffer, IterVar, PrimExpr, PrimFunc, Stmt, TirNode

if GENERATION == "relax":
    import tvm_ffi


# Operators of indices, by the names of their nodes.
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
    "FloorDiv": tir.floordiv,
    "FloorMod": tir.floormod,
    "Min": tir.Min,
    "Max": tir.Max,
}


def map_calls(func: PrimFunc, change: Callable[[PrimExpr], PrimExpr]) -> PrimFunc:
    """A PrimFunc whose calls of intrinsics are replaced by what `change` makes of them."""
    return mapped(func, "Call", change)


def mapped(node: TirNode, kind: str, change: Callable[[TirNode], TirNode]) -> TirNode:
    """A PrimFunc, statement or expression with each node of a kind as `change` makes it."""
    if GENERATION == "relax":
        found = getattr(tvm.ir if kind in ("Call", "TensorLoad") else tir, kind)
        return tvm_ffi.structural_map(node, ((found, change),))
    if isinstance(node, tir.PrimFunc):
        return node.with_body(mapped(node.body, kind, change))
    if isinstance(node, tir.PrimExpr):
        return mapped(tir.Evaluate(node), kind, change).value
    return tir.stmt_functor.ir_transform(node, None, change, [f"tir.{kind}"])


def folded(func: PrimFunc) -> PrimFunc:
    """A PrimFunc whose operators on two integers are the integers that they give: 7 for 9 + 1 - 3;
    on 0.27 only.
    """

    def fold(node: PrimExpr) -> PrimExpr:
        both = isinstance(node.a, tir.IntImm) and isinstance(node.b, tir.IntImm)
        return OPERATORS[type(node).__name__](node.a, node.b) if both else node

    return tvm_ffi.structural_map(func, tuple((getattr(tir, name), fold) for name in OPERATORS))


def simplified(func: PrimFunc) -> PrimFunc:
    """A PrimFunc by what its loops and blocks say of their variables."""
    if GENERATION == "relax":
        from tvm.s_tir.transform import StmtSimplify as simplify
    else:
        simplify = tir.transform.Simplify
    return simplify()(tvm.IRModule({"main": func}))["main"]


def map_loops(func: PrimFunc, change: Callable[[Stmt], Stmt]) -> PrimFunc:
    """A PrimFunc with each loop replaced by what `change` makes of it, inner ones first."""
    return mapped(func, "For", change)


def map_sequences(func: PrimFunc, change: Callable[[Stmt], Stmt]) -> PrimFunc:
    """A PrimFunc with each sequence of statements as `change` makes it, inner ones first."""
    return mapped(func, "SeqStmt", change)


def variables_in(expr: PrimExpr) -> set[PrimExpr]:
    """The variables of an expression."""
    found: set[Any] = set()
    walk(expr, lambda node: found.add(node) if isinstance(node, tir.Var) else None)
    return found


def substitute(expr: TirNode, new: Mapping[PrimExpr, PrimExpr]) -> TirNode:
    """An expression with other expressions for some of its variables."""
    if GENERATION == "relax":
        return tvm_ffi.structural_map(expr, (tvm.ir.Var, lambda var: new.get(var, var)))
    return tir.stmt_functor.substitute(expr, new)


def each_var_once(func: PrimFunc) -> PrimFunc:
    """A function in which no two expressions bind the same variable: copies of one, as of a loop
    that was split after TVM's own step that does this, LLVM's code generator refuses.
    """
    bound: list[Any] = []
    walk(func.body, bound.append, "Let")
    if not bound:
        return func
    if GENERATION == "relax":
        return in_ssa(func)
    # 0.17's pass gives the open sizes of blocks new variables too, in their bodies alone.
    body = tir.stmt_functor.ir_transform(func.body, None, _with_own_variable, ["tir.Let"])
    return func.with_body(body)


def _with_own_variable(let: PrimExpr) -> PrimExpr:
    var = tir.Var(let.var.name, let.var.dtype)
    return tir.Let(var, let.value, substitute(let.body, {let.var: var}))


def in_ssa(func: PrimFunc) -> PrimFunc:
    """The same function, with variables of its own for each expression and loop that binds one."""
    mod = tir.transform.ConvertSSA()(tvm.IRModule({"main": func}))
    return mod["main"]


def with_body(
    loop: Stmt, body: Stmt, extent: PrimExpr | None = None, kind: int | None = None
) -> Stmt:
    """A loop with another body, of so many turns, of another kind."""
    rest = (loop.step,) if GENERATION == "relax" else ()
    return tir.For(
        loop.loop_var, loop.min, loop.extent if extent is None else extent,
        loop.kind if kind is None else kind, body,
        loop.thread_binding, loop.annotations, *rest,
    )  # fmt: skip


def with_range(loop: Stmt, var: PrimExpr, extent: int, body: Stmt) -> Stmt:
    """A loop from 0 in place of another one."""
    zero = tir.const(0, dtype_of(var))
    return tir.For(var, zero, extent, loop.kind, body)


def sequence(stmts: Iterable[Stmt]) -> Stmt:
    """Statements one after the other; TVM wants no sequence in a sequence, and none of one."""
    flat: list[Any] = []
    for stmt in stmts:
        flat += list(stmt.seq) if type(stmt).__name__ == "SeqStmt" else [stmt]
    return flat[0] if len(flat) == 1 else tir.SeqStmt(flat)


def map_loads_and_calls(expr: PrimExpr, change: Callable[[PrimExpr], PrimExpr]) -> PrimExpr:
    """An expression with its loads and calls as `change` makes them, inner ones first."""
    if GENERATION == "relax":
        return tvm_ffi.structural_map(expr, ((TensorLoad, change), (tvm.ir.Call, change)))
    kinds = ["tir.BufferLoad", "tir.Call"]
    return tir.stmt_functor.ir_transform(tir.Evaluate(expr), None, change, kinds).value


def is_conditional(node: PrimExpr) -> bool:
    """Whether an expression is `if_then_else`."""
    return type(node).__name__ == "Call" and getattr(node.op, "name", "").endswith(".if_then_else")


def prefetch_op(load: PrimExpr) -> PrimExpr:
    """A hint to read the line of a buffer's element into L2."""
    prefix = "tir" if GENERATION == "relay" else "tirx"
    at = tir.call_intrin("handle", f"{prefix}.address_of", load)
    return tir.call_intrin("void", f"{prefix}.prefetch", at, 0, 2, 1)


def with_nodes(func: PrimFunc, load: PrimExpr, store: Stmt, block: Stmt) -> PrimFunc:
    """A PrimFunc with each load, store and block, from the inside out, as these return it."""
    if GENERATION == "relax":
        kinds = ((TensorLoad, load), (tir.BufferStore, store), (SBlock, block))
        return tvm_ffi.structural_map(func, kinds)
    by_kind = {"BufferLoad": load, "BufferStore": store, "Block": block}
    body = tir.stmt_functor.ir_transform(
        func.body,
        None,
        lambda node: by_kind[type(node).__name__](node),
        [f"tir.{kind}" for kind in by_kind],
    )
    return func.with_body(body)


def block_with(
    block: Stmt,
    reads: Sequence[TirNode],
    writes: Sequence[TirNode],
    body: Stmt,
    buffers: Sequence[Buffer],
    axes: list[IterVar] | None = None,
    notes: Attrs | None = None,
) -> Stmt:
    """A block with other regions, another body, other buffers, perhaps other axes and notes."""
    return type(block)(
        block.iter_vars if axes is None else axes, reads, writes, block.name_hint, body,
        block.init, buffers, block.match_buffers,
        block.annotations if notes is None else notes,
    )  # fmt: skip


def with_broadcasts(func: PrimFunc) -> PrimFunc:
    """A lowered PrimFunc where a few neighbours, repeated over the lanes, are one short load and a
    shuffle. 0.27's LLVM 22 sees that of pairs by itself; 0.17's LLVM 10 loads lane by lane (8 times
    slower).
    """
    if GENERATION == "relax":
        return func

    def short(load: PrimExpr) -> PrimExpr:
        found = _repeated(load.indices[0]) if len(load.indices) == 1 else None
        if found is None:
            return load
        start, count, lanes = found
        part = tir.BufferLoad(load.buffer, [tir.Ramp(start, 1, count)])
        return tir.Shuffle([part] * (lanes // count), [tir.const(i) for i in range(lanes)])

    return func.with_body(tir.stmt_functor.ir_transform(func.body, None, short, ["tir.BufferLoad"]))


def _repeated(index: PrimExpr) -> tuple[PrimExpr, int, int] | None:
    """First element, number and lanes of `start + lane % number`; None for any other index."""
    terms = _terms(index)
    starts = [t.value for t in terms if isinstance(t, tir.Broadcast)]
    lane = next((t for t in terms if isinstance(t, tir.FloorMod)), None)
    if lane is None or len(terms) != len(starts) + 1:
        return None
    if not isinstance(lane.a, tir.Ramp) or not isinstance(lane.b, tir.Broadcast):
        return None
    numbers = (lane.a.base, lane.a.stride, lane.a.lanes, lane.b.value)
    if not all(isinstance(n, (int, tir.IntImm)) for n in numbers):
        return None
    first, stride, lanes, count = map(int, numbers)
    fits = (first, stride) == (0, 1) and 1 < count < lanes and lanes % count == 0
    return (sum(starts, tir.const(0)), count, lanes) if fits else None


def _terms(index: PrimExpr) -> list[PrimExpr]:
    return [*_terms(index.a), *_terms(index.b)] if isinstance(index, tir.Add) else [index]
