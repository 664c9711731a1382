"""Parallel loops by hand, for tests of how their turns reach the threads."""

import numpy as np

from selfbyoc.tir.lowering import machine_code
from selfbyoc.tvm import GENERATION, get_func, make_target, te, tensor, tir


def parallel(body, turns=None, outer=1, dtype="int32"):
    """A function of a buffer with `body(buffer, turn)` in parallel, for so many turns, or as many
    as the buffer has elements, and all of it again (`outer`).
    """
    extent = te.var("n") if turns is None else turns
    buffer = tir.decl_buffer((extent,), dtype, "out")
    turn, again = tir.Var("i", "int32"), tir.Var("r", "int32")
    loop = tir.For(turn, 0, extent, tir.ForKind.PARALLEL, body(buffer, turn))
    if outer > 1:
        loop = tir.For(again, 0, outer, tir.ForKind.SERIAL, loop)
    if GENERATION == "relax":
        func = tir.PrimFunc([buffer], loop).with_attr("tirx.noalias", True)
    else:
        handle = tir.Var("out", "handle")
        func = tir.PrimFunc([handle], loop, buffer_map={handle: buffer})
    return func.with_attr("global_symbol", "main")


def compiled(body, turns=None, cores=2, outer=1, dtype="int32"):
    """It as machine code, to be called."""
    target = make_target({"kind": "llvm", "num-cores": cores})
    return get_func(machine_code(parallel(body, turns, outer, dtype), "main", target), "main")


def called(run, turns, dtype="int32"):
    """What is in the buffer after a call, of zeros before it."""
    found = tensor(np.zeros(turns, dtype))
    run(found)
    return found.numpy()


def one_more(out, turn):
    """Counts the turns."""
    return tir.BufferStore(out, out[turn] + 1, [turn])
