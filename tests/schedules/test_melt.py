"""`melt`: one op computed under a loop of its reader (WISHES A31)."""

import re

import numpy as np
import pytest
from harness import assert_close, model, random_args, run_case

import selfbyoc
from selfbyoc import Case, Composite, melt, op
from selfbyoc.errors import ScheduleError
from selfbyoc.tvm import get_block


def chain(x, v, w):
    """The thread's chain: stacked by one kernel, melted by its schedule."""
    return op.relu(op.conv2d(op.relu(op.conv2d(x, v, padding=(1, 1))), w, padding=(1, 1)))


CHAIN = Case(chain, x=(1, 3, 9, 11), v=(8, 3, 3, 3), w=(5, 8, 3, 3), constants=("v", "w"))


def dense(x, w, b):
    return op.relu(op.bias_add(op.dense(x, w), b))


DENSE = Case(dense, x=(13, 24), w=(7, 24), b=(7,))


def softmax(x, w):
    return op.softmax(op.dense(x, w))


SOFTMAX = Case(softmax, x=(5, 12), w=(9, 12))


def branches(x, w):
    y = op.relu(op.dense(x, w))
    return op.add(op.tanh(y), op.exp(y))


BRANCHES = Case(branches, x=(5, 12), w=(9, 12))


def kernel_of(composite, case):
    mod = model(composite, case, random_args(case))
    (kernel,) = selfbyoc.melting(
        selfbyoc.partition_for_tefuse(mod, composites=[composite]), "llvm"
    ).kernels
    assert kernel.level.name == "own schedule"
    return kernel


def melted(case, schedule, *pairs):
    """Right, in one kernel, and each pair is melted as the report sees it, which it was not."""
    composite = Composite("melted", case.program, schedule)
    run = run_case(composite, case)
    assert run.counts == {"melted": 1}
    assert_close(run)
    kernel = kernel_of(composite, case)
    stacked = kernel_of(Composite("stacked", case.program, lambda sch, ops, target: None), case)
    for producer, consumer in pairs:
        assert kernel.is_melted(producer, consumer), (producer, consumer)
        assert not stacked.is_melted(producer, consumer), (producer, consumer)
    return kernel


def test_a_chain_from_the_last_op_back():
    def schedule(sch, ops, target):
        n, c, y, x = sch.get_loops(ops.relu_1.block)
        sch.reorder(n, y, c, x)  # all channels of a row, so that no row is computed for each
        row = melt(sch, ops.conv2d_1, into=ops.relu_1, at=2)
        assert str(sch.get(row).loop_var.name) == "i2"
        melt(sch, ops.relu, into=ops.conv2d_1, at=row)
        melt(sch, ops.conv2d, into=ops.relu, at=row)
        sch.parallel(row)

    kernel = melted(CHAIN, schedule, ("conv2d_1", "relu_1"), ("relu", "relu_1"), ("conv2d", "relu"))
    for padding in ("conv2d_pad", "conv2d_1_pad"):  # they move with their convolutions
        assert [loop.kind for loop in kernel.nest.loops_of(padding)][:2] == ["serial", "parallel"]


@pytest.mark.parametrize("how", ["ops", "names", "blocks", "loop"])
def test_ops_names_blocks_and_loops(how):
    def schedule(sch, ops, target):
        given = {
            "ops": (ops.dense, ops.bias_add, ops.relu, 0),
            "names": ("dense", "bias_add", "relu", 0),
            "blocks": (*(get_block(sch, n) for n in ("dense", "bias_add", "relu")), 0),
            "loop": (ops.dense, ops.bias_add, ops.relu, sch.get_loops(ops.relu.block)[0]),
        }
        first, second, last, at = given[how]
        loop = melt(sch, second, into=last, at=at)
        melt(sch, first, into=second, at=loop)

    melted(DENSE, schedule, ("dense", "bias_add"), ("bias_add", "relu"))


def test_the_outer_loop_of_an_axis_that_is_split():
    def schedule(sch, ops, target):
        sch.compute_inline(ops.bias_add.block)
        i, j = sch.get_loops(ops.relu.block)
        outer, inner = sch.split(i, [None, 4])  # 13 rows: the last tile has one
        sch.reorder(outer, j, inner)
        assert sch.get(melt(sch, ops.dense, into=ops.relu, at=0)).same_as(sch.get(outer))

    kernel = melted(DENSE, schedule, ("dense", "relu"))
    assert kernel.nest.loops_of("dense")[0].extent == 4


def test_an_op_of_several_blocks():
    def schedule(sch, ops, target):
        melt(sch, ops.dense, into=ops.softmax, at=melt_rows(sch, ops))

    def melt_rows(sch, ops):
        *before, last = ops.softmax.blocks
        row = sch.get_loops(last)[0]
        for block in reversed(before):
            melt(sch, block, into=last, at=row)
        return row

    melted(SOFTMAX, schedule, ("dense", "softmax"))


def inlined(sch, ops):
    sch.compute_inline(ops.bias_add.block)
    melt(sch, ops.bias_add, into=ops.relu, at=0)


def gone(sch, ops):
    block = ops.bias_add.block
    sch.compute_inline(block)
    melt(sch, block, into=ops.relu, at=0)


def decomposed(sch, ops):
    sch.compute_inline(ops.bias_add.block)
    sch.decompose_reduction(ops.dense.block, sch.get_loops(ops.dense.block)[0])
    melt(sch, get_block(sch, "dense_update"), into=ops.relu, at=0)


CANNOT = {
    "a reduced axis": (
        SOFTMAX, lambda sch, ops: melt(sch, ops.dense, into=ops.softmax.blocks[0], at=1),
        r"melt dense into (\w+): at: axis 1 is r1, which \1 reduces: .*; expected one of 0 \(i0\)",
    ),
    "a reduced loop": (
        SOFTMAX,
        lambda sch, ops: melt(
            sch, ops.dense, into=ops.softmax.blocks[0],
            at=sch.get_loops(ops.softmax.blocks[0])[1],
        ),
        r"melt dense into (\w+): the loop is over r1, which \1 reduces: .*; expected one of 0",
    ),
    "no such axis": (
        DENSE, lambda sch, ops: melt(sch, ops.bias_add, into=ops.relu, at=2),
        r"melt bias_add into relu: at: no axis 2; expected one of 0 \(i0\), 1 \(i1\)",
    ),
    "no such op": (
        DENSE, lambda sch, ops: melt(sch, "dens", into=ops.relu, at=0),
        r"the producer 'dens' is no op and no block here, or inlined; there are "
        r"\['bias_add', 'dense', 'relu'\]; did you mean 'dense'\?",
    ),
    "an op inlined": (
        DENSE, inlined, r"the producer bias_add has no block; expected one that is not inlined",
    ),
    "a block inlined": (
        DENSE, gone, r"the producer is a block that is gone; expected one that is not inlined",
    ),
    "not a reader": (
        DENSE, lambda sch, ops: melt(sch, ops.dense, into=ops.relu, at=0),
        r"melt dense into relu: relu does not read it; \['bias_add'\] do",
    ),
    "a reader elsewhere": (
        BRANCHES, lambda sch, ops: melt(sch, ops.relu, into=ops.tanh, at=0),
        r"melt relu into tanh: \['exp'\] read it outside of the loop; melt them first",
    ),
    "a result of the kernel": (
        DENSE, lambda sch, ops: melt(sch, ops.relu, into=ops.dense, at=0),
        r"melt relu into dense: relu is a result of the kernel, not only read in it",
    ),
    "a loop of another op": (
        DENSE,
        lambda sch, ops: melt(
            sch, ops.bias_add, into=ops.relu, at=sch.get_loops(ops.dense.block)[0]
        ),
        r"melt bias_add into relu: at: expected one of relu's loops \['i0', 'i1'\]",
    ),
    "no loop": (
        DENSE, lambda sch, ops: melt(sch, ops.bias_add, into=ops.relu, at="i"),
        r"melt bias_add into relu: at: expected a loop or a number, found 'i'",
    ),
    "no op": (
        DENSE, lambda sch, ops: melt(sch, 3, into=ops.relu, at=0),
        r"the producer: expected an op, its name or a block, found 3",
    ),
    "what TVM refuses": (
        DENSE, decomposed,
        r"melt dense_update into relu: dense_update cannot move: The block \S+ is not a .*",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CANNOT)
def test_what_cannot_be_melted(name):
    case, wrong, text = CANNOT[name]
    composite = Composite("wrong", case.program, lambda sch, ops, target: wrong(sch, ops))
    with pytest.raises(ScheduleError, match=rf"^composite wrong: (?:melt: )?{text}") as raised:
        run_case(composite, case)
    reason, *lines = str(raised.value).splitlines()
    assert len(reason) < 400
    assert all(re.match(r"  at \S*test_melt.py:\d+ in ", line) for line in lines)


def test_numpy_agrees_about_the_branches():
    """The reader that is melted first makes room for what both read."""

    def schedule(sch, ops, target):
        sch.compute_inline(ops.exp.block)
        row = melt(sch, ops.tanh, into=ops.add, at=0)
        melt(sch, ops.relu, into=ops.tanh, at=row)

    kernel = melted(BRANCHES, schedule, ("tanh", "add"), ("relu", "tanh"))
    assert np.isclose(kernel.recompute, 1.0)
