"""Composites that are wrong on purpose, each in one way, for the tests of verification."""

import os
import signal

from selfbyoc import Composite, op
from selfbyoc.tvm import GENERATION, param_buffers, te, tir

M, K, N = 5, 33, 19  # no extent is a multiple of a vector


def pattern(x, w):
    return op.relu(op.dense(x, w))


def function(error, rows, weight_first):
    """relu(x w^T) as a PrimFunc with `error(i, j, x)` added, of which the first `rows` rows are
    written.
    """
    x, w = te.placeholder((M, K), name="x"), te.placeholder((N, K), name="w")
    k = te.reduce_axis((0, K), name="k")
    sums = te.compute((M, N), lambda i, j: te.sum(x[i, k] * w[j, k], axis=k), name="sums")
    out = te.compute(
        (M, N), lambda i, j: tir.Max(sums[i, j], tir.const(0, "float32")) + error(i, j, x), name="o"
    )
    return shortened(te.create_prim_func([w, x, out] if weight_first else [x, w, out]), rows)


def shortened(func, rows):
    """Every loop of M rows runs over fewer."""

    def change(loop):
        if int(loop.extent) != M:
            return loop
        extent = tir.IntImm(str(loop.extent.dtype) if GENERATION == "relay" else "int32", rows)
        return tir.For(loop.loop_var, loop.min, extent, loop.kind, loop.body)

    if GENERATION == "relay":
        return func.with_body(tir.stmt_functor.ir_transform(func.body, None, change, ["tir.For"]))
    import tvm_ffi

    return tvm_ffi.structural_map(func, (tir.For, change))


def replaced(error, rows=M):
    """A schedule that puts another function in the place of the stacked one."""

    def schedule(sch, ops, target):
        mod = sch.mod
        # The arguments come in the order in which the graph first uses them, which is TVM's own.
        weight_first = [int(e) for e in param_buffers(mod["main"])[0].shape] == [N, K]
        mod.update_func(mod.get_global_var("main"), function(error, rows, weight_first))

    return schedule


def none(i, j, x):
    return tir.const(0, "float32")


def _where(condition, value):
    return tir.if_then_else(condition, value, tir.const(0, "float32"))


def _raises(sch, ops, target):
    raise IndexError("no such loop")


def _crashes(sch, ops, target):
    os.kill(os.getpid(), signal.SIGSEGV)


def _illegal(sch, ops, target):
    sch.bind(sch.get_loops(ops.relu.block)[0], "threadIdx.x")


# name -> (schedule, the kind of input that finds it or the stage, a part of what is said)
SCHEDULES = {
    "in the last row": (
        replaced(lambda i, j, x: _where(i == M - 1, tir.const(1, "float32"))), "random", "[4, 0]"
    ),
    "in the tail": (
        replaced(lambda i, j, x: _where(j >= 16, tir.const(1, "float32"))), "random", "[0, 16]"
    ),
    "never written": (replaced(none, rows=M - 1), "random", "[4, 0]: nan"),
    "for large values alone": (
        replaced(lambda i, j, x: _where(x[i, 0] > 9, tir.const(9, "float32"))), "borders", "[0, 0]"
    ),
    "raises": (_raises, "build", "its schedule raised IndexError: no such loop"),
    "illegal": (_illegal, "build", "could not lower it"),
    "crashes": (_crashes, "build", "SIGSEGV"),
    # Reads 2 GiB before its input; behind it may lie as much of libraries, such as CUDA's.
    "crashes when run": (replaced(lambda i, j, x: x[i - (1 << 24), 0]), "nan", "SIGSEGV"),
}  # fmt: skip


def dense_relu(**options):
    return Composite("dense_relu", pattern, **options)


def _doubled(ins, call):
    x, w = ins
    k = te.reduce_axis((0, x.shape[1]), name="k")
    return te.compute(
        (x.shape[0], w.shape[0]),
        lambda i, j: te.sum(x[i, k] * w[j, k] * tir.const(2, "float32"), axis=k),
        name="products",
    )


def _raising(ins, call):
    raise ZeroDivisionError("no tiles")


def _plain(ins, call):
    x, w = ins
    k = te.reduce_axis((0, x.shape[1]), name="k")
    return te.compute(
        (x.shape[0], w.shape[0]), lambda i, j: te.sum(x[i, k] * w[j, k], axis=k), name="products"
    )


def _reversed_pack(w):
    return te.compute(w.shape, lambda i, j: w[w.shape[0] - 1 - i, j], name="packed")


def _raising_pack(w):
    raise ZeroDivisionError("no lanes")


# name -> (the options of the composite, a part of what is said)
COMPOSITES = {
    "compute": ({"compute": {"dense": _doubled}}, "wrong against NumPy"),
    "compute that raises": ({"compute": {"dense": _raising}}, "ZeroDivisionError: no tiles"),
    "pack": (
        {"compute": {"dense": _plain}, "pack": {"w": _reversed_pack}}, "wrong against NumPy"
    ),
    "pack that raises": (
        {"compute": {"dense": _plain}, "pack": {"w": _raising_pack}}, "ZeroDivisionError: no lanes"
    ),
    "reference": (
        {"reference": lambda x, w: x @ w.T}, "wrong against the composite's reference"
    ),
    "reference of another shape": (
        {"reference": lambda x, w: (x @ w.T).T}, "reference gives [(19, 5)], the kernel [(5, 19)]"
    ),
    "reference that raises": (
        {"reference": lambda x, w: x @ w}, "reference raised ValueError"
    ),
}  # fmt: skip
