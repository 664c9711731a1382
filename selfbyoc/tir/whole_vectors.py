"""Vectors that a test cuts off, whole where all lanes are inside, for which one test is enough.

    for lane in vectorized(16):         for lane in vectorized(16):
        if at + lane < n: ...               if at + 15 < n: ...
                                        for once in (0 if at + 15 < n else 1):
                                            for lane in 16:
                                                if at + lane < n: ...

TVM takes a vector with a test of its lanes apart, wherever it is. Where the last vector always has
as many lanes inside (n is a constant, and every vector starts at a multiple of its lanes), these
are smaller vectors without a test: 12 of 16 are 8 and 4, 5 of 8 are 4 and an element.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..tvm import Analyzer, BlockRealize, dtype_of, tir
from ..tvm.rewrite import map_loops, sequence, substitute, variables_in
from ..tvm.types import PrimExpr, PrimFunc, PrimVar, Stmt
from .lanes import conjuncts

NARROWEST = 4  # lanes of a vector


def with_whole_vectors(func: PrimFunc) -> PrimFunc:
    """A finished PrimFunc with such loops apart."""
    return map_loops(func, _apart)


def _apart(loop: Stmt) -> Stmt:
    if loop.kind != tir.ForKind.VECTORIZED or not isinstance(loop.body, BlockRealize):
        return loop
    realize, lane = loop.body, loop.loop_var
    tests = conjuncts(realize.predicate)
    own = [test for test in tests if lane in variables_in(test)]
    if not own or not all(_holds_up_to_a_lane(test, lane) for test in own):
        return loop
    others = [test for test in tests if lane not in variables_in(test)]
    last = substitute(tir.all(*own), {lane: loop.extent - 1})
    inside = _realized(realize, [*others, last])
    rest = _rest(own, lane, loop)
    if rest is None:
        left = [_turns(loop, realize, 0, int(loop.extent), tir.ForKind.SERIAL)]
    else:
        first = substitute(tir.all(*own), {lane: loop.min})
        left = _pieces(loop, _realized(realize, [*others, first]), rest)
    return sequence(
        [
            tir.For(lane, loop.min, loop.extent, tir.ForKind.VECTORIZED, inside),
            *(_unless(last, piece) for piece in left),
        ]
    )


def _pieces(loop: Stmt, realize: Stmt, rest: int) -> list[Stmt]:
    """The first lanes of a vector as smaller vectors, and what is left one by one."""
    done, found = 0, []
    width = int(loop.extent) // 2
    while width >= NARROWEST:
        if rest - done >= width:
            found.append(_turns(loop, realize, done, width, tir.ForKind.VECTORIZED))
            done += width
        width //= 2
    if done < rest:
        found.append(_turns(loop, realize, done, rest - done, tir.ForKind.SERIAL))
    return found


def _turns(loop: Stmt, realize: Stmt, start: int, count: int, kind: int) -> Stmt:
    """So many lanes of a vector, from one on."""
    turn = tir.Var("lane", dtype_of(loop.loop_var))
    body = substitute(realize, {loop.loop_var: turn + start if start else turn})
    return tir.For(turn, loop.min, tir.const(count, dtype_of(loop.extent)), kind, body)


def _rest(tests: Sequence[PrimExpr], lane: PrimVar, loop: Stmt) -> int | None:
    """The lanes inside the last vector, if always as many, and not all or none; None otherwise."""
    if len(tests) != 1 or not isinstance(tests[0].b, tir.IntImm):
        return None
    (test,), lanes = tests, int(loop.extent)
    bound = int(test.b) + (type(test).__name__ == "LE")
    start = substitute(test.a, {lane: loop.min})
    off = Analyzer().simplify(tir.floormod(start, lanes))
    is_whole = lanes & (lanes - 1) == 0 and isinstance(off, tir.IntImm) and int(off) == 0
    return bound % lanes or None if is_whole else None


def _unless(test: PrimExpr, body: Stmt) -> Stmt:
    """A loop of one turn or none, not an `if`: of memory that is read under that TVM (0.27) takes a
    loop's variable outside of it.
    """
    turns = tir.Select(test, tir.IntImm("int32", 0), tir.IntImm("int32", 1))
    return tir.For(
        tir.Var("once", "int32"), tir.IntImm("int32", 0), turns, tir.ForKind.SERIAL, body
    )


def _realized(realize: Stmt, tests: list[PrimExpr]) -> Stmt:
    return BlockRealize(realize.iter_values, tir.all(*tests), realize.block)


def _holds_up_to_a_lane(test: PrimExpr, lane: PrimExpr) -> bool:
    """Whether it is start + lane < bound."""
    if type(test).__name__ not in ("LT", "LE") or lane in variables_in(test.b):
        return False
    step = Analyzer().simplify(substitute(test.a, {lane: lane + 1}) - test.a)
    return isinstance(step, tir.IntImm) and int(step) == 1
