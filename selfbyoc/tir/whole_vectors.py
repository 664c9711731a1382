"""Vectors that a test cuts off, whole where all lanes are inside, for which one test is enough.

    for lane in vectorized(16):         for lane in vectorized(16):
        if at + lane < n: ...               if at + 15 < n: ...
                                        for once in (0 if at + 15 < n else 1):
                                            for lane in 16:
                                                if at + lane < n: ...

TVM takes a vector with a test of its lanes apart, wherever it is.
"""

from __future__ import annotations

from ..tvm import Analyzer, BlockRealize, dtype_of, tir
from ..tvm.rewrite import map_loops, sequence, substitute, variables_in
from ..tvm.types import PrimExpr, PrimFunc, Stmt
from .lanes import conjuncts


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
    turn = tir.Var("lane", dtype_of(lane))
    inside = _realized(realize, [*others, last])
    single = substitute(realize, {lane: turn})
    single = tir.For(turn, loop.min, loop.extent, tir.ForKind.SERIAL, single)
    return sequence(
        [
            tir.For(lane, loop.min, loop.extent, tir.ForKind.VECTORIZED, inside),
            _unless(last, single),
        ]
    )


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
