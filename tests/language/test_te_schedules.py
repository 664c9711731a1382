"""A schedule of TE in place of a composite's: refused, with the way to say it now (WISHES A44)."""

import pytest
from harness import assert_close, model, random_args, run_case

import selfbyoc
from selfbyoc import Case, Composite, op
from selfbyoc.errors import CompositeError, ScheduleError
from selfbyoc.tvm import GENERATION, te

CASE = Case(x=(5, 24), w=(7, 24))


def pattern(x, w):
    return op.relu(op.dense(x, w))


def creating(sch, ops, target):
    s = te.create_schedule(ops.relu.block)
    s[ops.dense].compute_at(s[ops.relu], s[ops.relu].op.axis[0])


def as_topi(outs):
    return [out.op for out in outs]


def as_a_strategy(attrs, outs, target):
    return attrs


def over_tensors(s, x, w, out):
    s[out].parallel(s[out].op.axis[0])


@pytest.mark.parametrize(
    ("function", "found"),
    [
        (creating, "found te.create_schedule in creating, a schedule of TE; "),
        (as_topi, r"found as_topi\(outs\), the signature of a schedule of TE; "),
        (as_a_strategy, r"found as_a_strategy\(attrs, outs, target\), the signature of a sched"),
        (over_tensors, r"found over_tensors\(s, x, w, out\), the signature "),
        ({"llvm": as_topi}, r"found as_topi\(outs\), the signature of a schedule of TE; "),
    ],
)  # fmt: skip
def test_a_declaration(function, found):
    with pytest.raises(CompositeError, match=f"^composite mine: schedule: {found}") as raised:
        Composite("mine", pattern, function)
    assert "sch.get_loops(ops.relu.block) for s[relu].op.axis" in str(raised.value)


def by_stage(sch, ops, target):
    sch[ops.relu].parallel(0)


def by_axis(sch, ops, target):
    first, *_ = ops.relu.block.op.axis
    return first


def elsewhere(target):
    return te.create_schedule(target)


def by_a_helper(sch, ops, target):
    elsewhere(target)


@pytest.mark.parametrize(
    ("function", "spelling"),
    [(by_stage, "sch[ops.relu].parallel"), (by_axis, ".op.axis"), (by_a_helper, "create_schedule")],
)
def test_what_it_raises(function, spelling):
    with pytest.raises(ScheduleError) as raised:
        run_case(Composite("mine", pattern, function), CASE)
    text = str(raised.value)
    assert text.startswith("composite mine: its schedule raised ")
    assert f"; {spelling!r} is TE: a composite's schedule is a function (sch, ops, target)" in text


@pytest.mark.skipif(GENERATION == "relax", reason="0.27 has no schedules of TE")
def test_one_that_is_returned():
    def returning(sch, ops, target):
        a = te.placeholder((4,), name="a")
        return getattr(te, "create_schedule")(te.compute((4,), lambda i: a[i]).op)  # noqa: B009

    with pytest.raises(
        ScheduleError, match=r"^composite mine: its schedule returned a schedule of TE"
    ):
        run_case(Composite("mine", pattern, returning), CASE)


def test_other_errors_say_nothing_of_te():
    def broken(sch, ops, target):
        return {}["nothing"]

    with pytest.raises(ScheduleError) as raised:
        run_case(Composite("mine", pattern, broken), CASE)
    assert str(raised.value).startswith(
        f"composite mine: its schedule raised KeyError: 'nothing'\n  at {__file__}:"
    )


def test_as_it_is_said_now():
    """What `creating` meant."""

    def schedule(sch, ops, target):
        sch.compute_at(ops.dense.block, sch.get_loops(ops.relu.block)[0])

    composite = Composite("mine", pattern, schedule)
    assert_close(run_case(composite, CASE))
    mod = model(composite, CASE, random_args(CASE))
    parted = selfbyoc.partition_for_tefuse(mod, composites=[composite])
    assert selfbyoc.melting(parted, "llvm").kernels[0].is_melted("dense", "relu")
