"""Schedules that are wrong on purpose, each in one way, for the tests of `bounds`."""

from wrong_composites import K, M, N, dense_relu, none, replaced, shortened
from wrong_composites import function as plain

from selfbyoc import Case
from selfbyoc.tvm import param_buffers, tir
from selfbyoc.tvm.rewrite import sequence

CASE = Case(x=(M, K), w=(N, K))


def composite(schedule=None):
    """relu(x w^T), 5x33 by 19x33."""
    return dense_relu(schedule=schedule, cases=(CASE,))


def by(function):
    """A schedule that puts another function in the place of the stacked one."""

    def schedule(sch, ops, target):
        mod = sch.mod
        weight_first = [int(e) for e in param_buffers(mod["main"])[0].shape] == [N, K]
        mod.update_func(mod.get_global_var("main"), function(weight_first))

    return schedule


def with_root(func, change):
    """The function with another body in its root block."""
    realize = func.body
    block = realize.block
    new = type(block)(
        block.iter_vars, block.reads, block.writes, block.name_hint, change(block.body), block.init,
        block.alloc_buffers, block.match_buffers, block.annotations,
    )  # fmt: skip
    return func.with_body(type(realize)(realize.iter_values, realize.predicate, new))


def twice_by_tasks(weight_first):
    """All of it by each of two parallel iterations."""
    parallel = 1  # ForKind
    task = tir.Var("task", "int32")
    zero, two = (tir.const(i, "int32") for i in (0, 2))
    func = plain(none, M, weight_first)
    return with_root(func, lambda body: tir.For(task, zero, two, parallel, body))


def twice_in_turn(weight_first):
    """The last stage, relu, is written and written again."""

    def again(body):
        return sequence([*body.seq, list(body.seq)[-1]])

    return with_root(plain(none, M, weight_first), again)


def sums_of_fewer_rows(weight_first):
    """A workspace of five rows, of which four are written, and read whole."""

    def fewer(body):
        first, *rest = body.seq
        return sequence([shortened_stmt(first), *rest])

    return with_root(plain(none, M, weight_first), fewer)


def shortened_stmt(stmt):
    """The loops of M rows of a statement, over one row less."""
    holder = tir.PrimFunc([], stmt)
    return shortened(holder, M - 1).body


# name -> schedule
SCHEDULES = {
    "reads past its input": replaced(lambda i, j, x: x[i, j + K - N + 1]),
    "reads before its input": replaced(lambda i, j, x: x[i, j - 1]),
    "leaves a row": replaced(none, rows=M - 1),
    "twice by tasks": by(twice_by_tasks),
    "twice in turn": by(twice_in_turn),
    "reads what nobody wrote": by(sums_of_fewer_rows),
}
