"""`by_rules`: dlight's rules as a composite's schedule (WISHES C19)."""

import pytest
from harness import assert_close, model, random_args, run_case

import selfbyoc
from selfbyoc import Case, Composite, by_rules, op
from selfbyoc.errors import ScheduleError
from selfbyoc.tvm import GENERATION, Schedule, child_blocks, topi
from selfbyoc.tvm.tune import dlight

ONE_ROW = Case(lambda x, w: op.relu(op.dense(x, w)), x=(1, 250), w=(131, 250), constants=("w",))
ROWS = Case(lambda x: op.softmax(x), x=(5, 37))
cpu_only = pytest.mark.skipif(GENERATION == "relay", reason="0.17's dlight has no rules for CPUs")


@dlight().ScheduleRule.from_callable("Rows")
def rows(func, target, tunable):
    """Runs the rows of each stage in parallel."""
    sch = Schedule(func)
    for block in child_blocks(sch):
        sch.parallel(sch.get_loops(block)[0])
    return sch


@dlight().ScheduleRule.from_callable("Never")
def never(func, target, tunable):
    return None


@dlight().ScheduleRule.from_callable("Broken")
def broken(func, target, tunable):
    return {}["nothing"]


@dlight().ScheduleRule.from_callable("Mistaken")
def mistaken(func, target, tunable):
    return [func]


def kernel_of(composite, case):
    mod = model(composite, case, random_args(case))
    parted = selfbyoc.partition_for_tefuse(mod, composites=[composite])
    (kernel,) = selfbyoc.melting(parted, "llvm").kernels
    assert kernel.level.name == "own schedule"
    return kernel


def of(case, *rules):
    return Composite("ruled", case.program, by_rules(*rules))


@pytest.mark.parametrize("rules", [(rows,), (never, rows)], ids=["one", "the first that applies"])
def test_a_rule_of_ones_own(rules):
    composite = of(ROWS, *rules)
    run = run_case(composite, ROWS)
    assert run.counts == {"ruled": 1}
    assert_close(run)
    nest = kernel_of(composite, ROWS).nest
    assert {nest.loops_of(stage.name)[0].kind for stage in nest.stages} == {"parallel"}
    assert [info.name for info in kernel_of(composite, ROWS).ops] == ["softmax"]  # op info is kept


@cpu_only
@pytest.mark.parametrize(
    ("case", "rule", "stages"),
    [
        (ONE_ROW, "cpu.GEMV", ["dense", "relu"]),
        (ROWS, "cpu.Reduction", ["softmax_max", "softmax_exp", "softmax_sum", "softmax"]),
    ],
)
def test_a_rule_of_tvms_on_a_cpu(case, rule, stages):
    composite = of(case, rule)
    run = run_case(composite, case)
    assert run.counts == {"ruled": 1}
    assert_close(run)
    nest = kernel_of(composite, case).nest
    assert [stage.name for stage in nest.stages] == stages
    kinds = {loop.kind for stage in nest.stages for loop in nest.loops_of(stage.name)}
    assert "parallel" in kinds


@pytest.mark.skipif(GENERATION == "relax", reason="0.27 has rules for CPUs")
def test_what_this_tvm_has_not():
    with pytest.raises(ScheduleError, match=r"dlight of this TVM has no 'cpu.GEMV'; it has \['gpu"):
        by_rules("cpu.GEMV")


def test_where_no_rule_applies():
    """Rules for GPUs on a CPU, and one that never does: no fallback that nobody sees."""
    text = "^composite ruled: by_rules: none of Never, GEMV applies to its function for llvm$"
    with pytest.raises(ScheduleError, match=text):
        run_case(of(ROWS, never, "gpu.GEMV"), ROWS)


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (broken, r"by_rules: Broken raised KeyError: 'nothing'"),
        (mistaken, r"by_rules: Mistaken: expected a schedule, found "),
    ],
)
def test_a_rule_that_is_wrong(rule, text):
    with pytest.raises(ScheduleError, match=f"^composite ruled: {text}"):
        run_case(of(ROWS, rule), ROWS)


@pytest.mark.parametrize(
    ("rules", "text"),
    [
        ((), r"expected a rule, found none; TVM has \['"),
        (("gpu.Nothing",), r"dlight of this TVM has no 'gpu.Nothing'; it has \['"),
        ((7,), "expected a rule of dlight or its name, found 7"),
        ((topi.nn.conv2d_nchw,), "expected a rule of dlight or its name, found <function"),
    ],
)
def test_what_is_no_rule(rules, text):
    with pytest.raises(ScheduleError, match=f"^by_rules: {text}"):
        by_rules(*rules)


@pytest.mark.skipif(GENERATION == "relax", reason="0.27's TOPI has no schedules")
def test_topis_schedules_are_of_te():
    with pytest.raises(ScheduleError, match=r"found te\.create_schedule in schedule_injective"):
        by_rules(topi.generic.schedule_injective)
