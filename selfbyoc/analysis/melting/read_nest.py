"""A scheduled PrimFunc -> its loop nest: blocks with their ops, counts and what they read."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ...codegen.info.op_info import OpInfo, op_info
from ...errors import InputError
from ...tir.cut_loops import CUT
from ...tvm import is_reduction, region_buffer, walk
from ...tvm.types import IterVar, PrimExpr, PrimFunc, PrimVar, Stmt, TirNode
from .counting import Range, count, enter, variables
from .loop_nest import PARALLEL, SERIAL, UNROLLED, VECTORIZED, Loop, Nest, Stage
from .roles import products, role_of

_KINDS = {0: SERIAL, 1: PARALLEL, 2: VECTORIZED, 3: UNROLLED}  # tir.ForKind


@dataclass
class _Scope:
    """A loop, or the whole function, while it is read."""

    loop: Any = None
    extent: int = 1
    children: list[_Scope | _Found] = field(default_factory=list)


@dataclass
class _Found:
    """A block with the variables that each of its axes depends on."""

    stage: Stage
    axes: tuple[tuple[str, frozenset[int]], ...]


def loop_nest(func: PrimFunc) -> Nest:
    """The loop nest of a PrimFunc that is made of blocks; TVM's scheduling keeps it so."""
    reader = _Reader(op_info(func))
    root = _Scope()
    reader.statement(func.body, root, _Context())
    body = tuple(n for n in map(_frozen, _without_inits(root).children) if n is not None)
    if not body:
        raise InputError("prim_func: it has no blocks; expected a scheduled function, not lowered")
    return Nest(body)


@dataclass(frozen=True)
class _Context:
    """What holds where a statement stands."""

    loops: tuple[Range, ...] = ()
    conditions: tuple[PrimExpr, ...] = ()
    bound: Any = field(default_factory=dict)  # iteration variables of outer blocks


class _Reader:
    """Visits statements; the two TVMs name their blocks differently, the fields are the same."""

    def __init__(self, ops: Sequence[OpInfo]) -> None:
        self.ops = ops

    def statement(self, stmt: Stmt, into: _Scope, at: _Context) -> None:
        kind = type(stmt).__name__
        if kind == "For":
            self._loop(stmt, into, at)
        elif kind == "SeqStmt":
            for part in stmt.seq:
                self.statement(part, into, at)
        elif kind == "IfThenElse":
            held = _Context(at.loops, (*at.conditions, stmt.condition), at.bound)
            self.statement(stmt.then_case, into, held)
            if stmt.else_case is not None:  # counted as if always taken
                self.statement(stmt.else_case, into, at)
        elif kind in ("BlockRealize", "SBlockRealize"):
            self._block(stmt, into, at)
        elif hasattr(stmt, "body"):
            self.statement(stmt.body, into, at)

    def _loop(self, stmt: Stmt, into: _Scope, at: _Context) -> None:
        loop, conditions = enter(stmt, at.loops)
        scope = _Scope(stmt, loop.extent)
        into.children.append(scope)
        inner = _Context((*at.loops, loop), (*at.conditions, *conditions), at.bound)
        self.statement(stmt.body, scope, inner)

    def _block(self, realize: Stmt, into: _Scope, at: _Context) -> None:
        block = realize.block
        bound = {**at.bound}
        for iv, value in zip(block.iter_vars, realize.iter_values, strict=True):
            bound[hash(iv.var)] = value
        inner = _Context(at.loops, (*at.conditions, realize.predicate), bound)
        if _has_blocks(block.body):
            self.statement(block.body, into, inner)
        elif block.writes:
            into.children.append(self._stage(realize, inner))

    def _stage(self, realize: Stmt, at: _Context) -> _Found:
        block = realize.block
        written = region_buffer(block.writes[0])
        reads = [region_buffer(r) for r in block.reads]
        domain = math.prod(int(iv.dom.extent) for iv in block.iter_vars)
        runs = count(at.loops, at.conditions, at.bound)
        outer = _outer_variables(block, at)
        covers = count(at.loops, at.conditions, at.bound, [*realize.iter_values, *outer])
        name, role = str(block.name_hint), role_of(block, written)
        stage = Stage(
            name,
            op_of(name, self.ops),
            role,
            str(written.name),
            tuple(dict.fromkeys(str(b.name) for b in reads if not b.same_as(written))),
            tuple((_plain(iv), int(iv.dom.extent)) for iv in block.iter_vars if is_reduction(iv)),
            domain,
            runs.times,
            covers.times if outer else min(covers.times, domain),
            runs.exact and covers.exact,
            products(block) if role == "sum" else 0,
        )
        axes = (
            (_plain(iv), frozenset(variables(value, at.bound)))
            for iv, value in zip(block.iter_vars, realize.iter_values, strict=True)
        )
        return _Found(stage, tuple(axes))


def _outer_variables(block: Stmt, at: _Context) -> list[PrimVar]:
    """What a block's body takes from around it beside its own axes, as blockize and opaque blocks
    leave it: the axes of the block that it is in, and loops.
    """
    own = {hash(iv.var) for iv in block.iter_vars}
    known = {hash(loop.var) for loop in at.loops} | set(at.bound)
    used: dict[int, Any] = {}

    def visit(node: TirNode) -> None:
        if type(node).__name__ == "Var" and hash(node) in known - own:
            used[hash(node)] = node

    walk(block.body, visit)
    return list(used.values())


def _plain(iter_var: IterVar) -> str:
    return str(iter_var.var.name).removeprefix("v_")


def _has_blocks(body: Stmt) -> bool:
    found: list[bool] = []
    walk(body, lambda n: found.extend([True] * type(n).__name__.endswith("BlockRealize")))
    return bool(found)


def op_of(block: str, ops: Sequence[OpInfo]) -> str:
    """The op of a block. A compute for the whole composite hands all blocks to the last op: there
    the block's name decides, if it begins with an op's.
    """
    base = block.removesuffix("_init").removesuffix("_update")
    names = {block, base, base.removesuffix("_local")}
    owners = [op.name for op in ops if names & set(op.blocks)]
    if owners and not is_whole(ops):
        return owners[0]
    fits = [op.name for op in ops if base == op.name or base.startswith(f"{op.name}_")]
    return max(fits, key=len, default=ops[0].name if len(ops) == 1 else "")


def is_whole(ops: Sequence[OpInfo]) -> bool:
    """Whether one compute made all stages of several ops, and gave them names of its own."""
    owners = [op for op in ops if op.blocks]
    if len(ops) == 1 or len(owners) != 1:
        return False
    return not all(block.startswith(owners[0].name) for block in owners[0].blocks)


def _without_inits(scope: _Scope) -> _Scope:
    """A decomposed reduction as one stage: `x_init` goes, `x_update` becomes `x`."""
    updates = {found.stage.name for found in _all(scope) if found.stage.name.endswith("_update")}

    def kept(node: _Scope | _Found) -> _Scope | _Found | None:
        if isinstance(node, _Scope):
            children = [c for c in map(kept, node.children) if c is not None]
            return _Scope(node.loop, node.extent, children) if children else None
        stage = node.stage
        if stage.name.endswith("_init") and f"{stage.name.removesuffix('_init')}_update" in updates:
            return None
        name = stage.name.removesuffix("_update") if stage.reduces else stage.name
        return _Found(replace(stage, name=name), node.axes)

    found = kept(scope)
    return found if isinstance(found, _Scope) else _Scope()


def _all(scope: _Scope) -> list[_Found]:
    found: list[_Found] = []
    for child in scope.children:
        found += [child] if isinstance(child, _Found) else _all(child)
    return found


def _frozen(node: _Scope | _Found) -> Loop | Stage:
    if isinstance(node, _Found):
        return node.stage
    loop, key = node.loop, hash(node.loop.loop_var)
    last = _telling(_all(node))
    axes = [name for name, used in last.axes if key in used]
    thread = getattr(loop, "thread_binding", None)
    kind = str(thread.thread_tag) if thread is not None else _KINDS.get(int(loop.kind), SERIAL)
    return Loop(
        str(loop.loop_var.name),
        node.extent,
        kind,
        f"{' and '.join(axes)} of {last.stage.name}" if axes else "",
        tuple(_frozen(child) for child in node.children),
        CUT in (loop.annotations or {}),
    )


def _telling(found: Sequence[_Found]) -> _Found:
    """The last block whose axes have names: TVM numbers those of the copies that it makes."""
    named = [f for f in found if not all(re.fullmatch(r"v\d+", name) for name, _ in f.axes)]
    return (named or found)[-1]
