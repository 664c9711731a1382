"""Parallel loops whose threads help each other when they are done, as a scheduler that steals work
does.

TVM gives each thread an equal share of a loop, and all wait for the last: a core that somebody else
uses for a moment, or a slow one among fast ones, costs all of them its time. Here a share is taken
in chunks, first by its own thread, in whose caches lies what it wrote before, then by whoever is
done. Two virtual cores of Zen 3, in turns in one process (Nov 2026), of int8 ResNet-50 1.03 to 1.10
times as fast, SqueezeNet 1.03 to 1.08, MobileNetV2 1.08; of float32 1.00 to 1.03. With one count
for all, which every thread writes all the time, MobileNetV2 was slower than before, 0.91.

A chunk is taken by an atomic addition, for which TIR has no node: LLVM's own text is linked in.
"""

from __future__ import annotations

from ..tvm import GENERATION, StringImm, dtype_of, tir, tvm, walk
from ..tvm.rewrite import map_loops, sequence
from ..tvm.stack import on_stack
from ..tvm.types import Buffer, PrimExpr, PrimFunc, Stmt

CHUNKS = 16  # of a share
_ZERO = tir.const(0, "int32")
_LINE = 16  # int32 of a line of cache: each share's count has one for itself
_TAKE = "selfbyoc_take_chunk"
_POINTER = "ptr" if int(tvm.target.codegen.llvm_version_major()) >= 15 else "i32*"
# What comes too late reads alone: an addition would take the line from who works there.
_TEXT = f"""
define i32 @{_TAKE}({_POINTER} %taken, i32 %chunks) {{
  %seen = load atomic i32, {_POINTER} %taken monotonic, align 4
  %left = icmp slt i32 %seen, %chunks
  br i1 %left, label %more, label %none
more:
  %chunk = atomicrmw add {_POINTER} %taken, i32 1 monotonic
  ret i32 %chunk
none:
  ret i32 %chunks
}}
"""


def with_stealing(func: PrimFunc, cores: int) -> PrimFunc:
    """A lowered PrimFunc for a CPU with its parallel loops so, a share for each of its cores."""

    def change(loop: Stmt) -> Stmt:
        return _shared(loop, cores) if _can_be(loop, cores) else loop

    return func if cores == 1 else map_loops(func, change)


def _can_be(loop: Stmt, cores: int) -> bool:
    """Whether a loop is one of threads, of more turns than cores, that calls no other function: for
    arguments of calls TVM has memory of each thread in bodies of parallel loops alone (0.17, 0.27).
    """
    if loop.kind != tir.ForKind.PARALLEL:
        return False
    if isinstance(loop.extent, tir.IntImm) and int(loop.extent) <= cores:
        return False
    calls: list[bool] = []

    def visit(call: PrimExpr) -> None:
        name = str(getattr(call.op, "name", ""))
        calls.append(name.partition(".")[2].startswith(("tvm_call_", "tvm_stack_")))

    walk(loop.body, visit, "Call")
    return not any(calls)


def _shared(loop: Stmt, shares: int) -> Stmt:
    """taken = 0; in each thread: its share, and then the others."""
    taken = tir.decl_buffer((shares * _LINE,), "int32", "chunks_taken")
    own = tir.decl_buffer((1,), "int32", "own_share", scope="local")
    share, turn = tir.Var("share", "int32"), tir.Var("nth_share", "int32")
    # Of fewer threads one has several: it begins with the last, and whoever helps it comes to those
    # it has not begun.
    mark = tir.For(share, 0, shares, tir.ForKind.PARALLEL, tir.BufferStore(own, share, [0]))
    nth = tir.floormod(own[0] + (shares - turn), shares)
    visit = tir.For(turn, 0, shares, tir.ForKind.SERIAL, _chunks(loop, shares, nth, taken))
    work = on_stack(own, sequence([tir.BufferStore(own, _ZERO, [0]), mark, visit]))
    for key, value in (("parallel_launch_point", _ZERO), ("import_llvm", StringImm(_TEXT))):
        work = tir.AttrStmt(_ZERO, f"pragma_{key}", value, work)
    start = [tir.BufferStore(taken, _ZERO, [n * _LINE]) for n in range(shares)]
    return on_stack(taken, sequence([*start, work]))


def _chunks(loop: Stmt, shares: int, share: PrimExpr, counts: Buffer) -> Stmt:
    """while (chunk = taken[share]++) < chunks: each turn of the chunk."""
    extent, dtype = loop.extent, str(dtype_of(loop.loop_var))
    turns = tir.floordiv(extent + shares - 1, shares)  # of a share
    size = tir.Max(1, tir.floordiv(turns + CHUNKS - 1, CHUNKS))  # an open size may be 0
    begin = share.astype(dtype) * turns
    left = tir.Min(turns, extent - begin)
    chunks = tir.floordiv(left + size - 1, size).astype("int32")  # none or fewer of a last share
    own = tir.decl_buffer((1,), "int32", "chunk", scope="local")
    first = own[0].astype(dtype) * size
    body = _turns(loop, loop.min + begin + first, tir.Min(size, left - first))
    taken = tir.call_extern("int32", _TAKE, tir.address_of(counts[share * _LINE]), chunks)
    take = tir.BufferStore(own, taken, [0])
    return on_stack(own, sequence([take, tir.While(own[0] < chunks, sequence([body, take]))]))


def _turns(loop: Stmt, first: PrimExpr, count: PrimExpr) -> Stmt:
    """Some turns of a loop, one after the other."""
    var, kind, own = loop.loop_var, tir.ForKind.SERIAL, loop.annotations
    if GENERATION == "relax":
        return tir.For(var, first, count, kind, loop.body, annotations=own)
    turn = tir.Var("turn", var.dtype)  # 0.17's code generator begins at 0
    body = tir.LetStmt(var, first + turn, loop.body)
    return tir.For(turn, 0, count, kind, body, annotations=own)
