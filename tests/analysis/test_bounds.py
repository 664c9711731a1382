"""`bounds`: it finds what is planted, and nothing in the built-in composites."""

import json

import numpy as np
import pytest
from bounds_mistakes import SCHEDULES, composite
from matrix_cells import smallest
from wrong_composites import replaced

import selfbyoc
from selfbyoc.__main__ import main
from selfbyoc.analysis.bounds.bounds import Plan, check, of_case, of_cases
from selfbyoc.analysis.bounds.records import (
    AGAIN,
    ANALYZER,
    CRASHED,
    ENUMERATION,
    FAILED,
    LEFT_OUT,
    ONCE,
    OPEN,
    PASSED,
    WRONG,
)  # fmt: skip
from selfbyoc.machine import host
from selfbyoc.tvm import GENERATION, make_target, tir

HOST = selfbyoc.host_target()
NAMES = [
    c.name for c in selfbyoc.BUILTIN if any(GENERATION in case.generations for case in c.cases)
]
SAMPLE = sorted(np.random.default_rng(14).choice(NAMES, 3, replace=False))


def found_for(schedule, **options):
    (found,) = of_cases([composite(schedule)], Plan(HOST, **options))
    return found


def statuses(found):
    return {run.name: run.status for run in found.runs}


def all_well(name, target):
    """The smallest case, with weights as inputs and as constants."""
    chosen = next(c for c in selfbyoc.BUILTIN if c.name == name)
    case, plan = smallest(chosen), Plan(target)
    for constants in ((), list(case.args)[1:]):
        for subject in of_case(chosen, case, plan, constants):
            found = check(subject, case.name, plan)
            assert found.ok, found
            assert [run.status for run in found.runs if run.name.startswith("fence")] == [
                PASSED
            ] * 2
            assert all(written.whole.ok for written in found.proof.outputs), found.listed
            assert not [item for item in found.listed if item.question != "written once"]


@pytest.mark.parametrize("name", SAMPLE)
def test_some_built_in_composites(name):
    all_well(name, HOST)


@pytest.mark.parametrize("target", ["host", "llvm -mcpu=haswell", "llvm"])
@pytest.mark.parametrize("name", NAMES)
def test_a_built_in_composite(name, target):
    if target != "host" and not host.runs(target):
        pytest.skip(f"this machine does not run {target}")
    all_well(name, HOST if target == "host" else make_target(target))


def test_a_right_schedule():
    found = found_for(None)
    assert found.ok
    assert set(statuses(found).values()) == {PASSED}
    (written,) = found.proof.outputs
    assert (written.whole.means, written.times) == (ANALYZER, ONCE)
    assert {ANALYZER} <= set(found.proof.inside) <= {ANALYZER, ENUMERATION}
    assert found.listed == []


# name -> what is listed, and which runs do not pass
PLANTED = {
    "reads past its input": (
        (WRONG, "inside: x[i * 33 + j + 15]: element 165 of 165 where i = 4, j = 18"),
        {"fence after": CRASHED, "bound checker": FAILED},
    ),
    "reads before its input": (
        (WRONG, "inside: x[i * 33 + j - 1]: element -1 of 165 where i = 0, j = 0"),
        {"fence before": CRASHED, "workspaces": CRASHED, "bound checker": FAILED},
    ),
    "leaves a row": (
        (WRONG, "written: o: 19 of 95 elements are not written, the first is 76"),
        {"fence after": FAILED},
    ),
    "twice by tasks": (
        (WRONG, "tasks apart: o: element 0 is written by task 1 and written by 0"),
        {},
    ),
    "twice in turn": ((OPEN, "written once: o: 95 elements are written more than once"), {}),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANTED)
def test_what_is_planted_is_found(name):
    (means, said), failing = PLANTED[name]
    found = found_for(SCHEDULES[name])
    assert (means, said) in [(item.means, str(item)) for item in found.listed]
    assert found.ok == (means == OPEN)
    assert {n: s for n, s in statuses(found).items() if s not in (PASSED, LEFT_OUT)} == failing


def test_a_workspace_that_is_read_before_it_is_written():
    found = found_for(SCHEDULES["reads what nobody wrote"])
    (run,) = (run for run in found.runs if run.name == "workspaces")
    assert run.status == FAILED
    assert "19 elements of output 0 depend on what lay there before" in run.detail


def test_what_the_analyzer_cannot_tell_is_enumerated():
    """j + 14 or j + 15, together up to 32: by itself neither summand is small enough."""

    def moved_back(i, j, x):
        return x[i, j + 14 + tir.Select(j > 17, tir.const(0), tir.const(1))]

    found = found_for(replaced(moved_back), is_run=False)
    assert found.ok
    assert found.proof.inside[ENUMERATION] == 1
    assert found.runs == ()


def test_an_index_that_is_data_is_listed():
    def looked_up(i, j, x):
        return x[i, tir.Cast("int32", x[i, 0] * tir.const(0.1, "float32"))]

    found = found_for(replaced(looked_up))
    (item,) = found.listed
    assert (item.means, item.buffer, item.reason) == (OPEN, "x", "its index is data")
    assert found.ok


def test_data_within_limits_is_proved():
    def looked_up(i, j, x):
        place = tir.Cast("int32", x[i, 0] * tir.const(0.1, "float32"))
        return x[i, tir.Max(tir.Min(place, 2), 0)]

    found = found_for(replaced(looked_up), is_run=False)
    assert found.ok
    assert not found.listed


def test_elements_that_are_written_again_are_counted():
    (written,) = found_for(SCHEDULES["twice in turn"], is_run=False).proof.outputs
    assert (written.times, written.again, written.whole.means) == (AGAIN, 95, ENUMERATION)


def test_a_schedule_that_raises():
    def schedule(sch, ops, target):
        raise IndexError("no such loop")

    found = found_for(schedule)
    assert not found.ok
    (run,) = found.runs
    assert (run.name, run.status) == ("build", FAILED)
    assert "no such loop" in run.detail


FILE = """
from selfbyoc import Case, Composite, op
from selfbyoc.tvm import tir
from wrong_composites import replaced

def pattern(x, w):
    return op.relu(op.dense(x, w))

past = replaced(lambda i, j, x: x[i, j + 15])
case = Case(x=(5, 33), w=(19, 33))
right = Composite("right", pattern, cases=(case,))
wrong = Composite("wrong", pattern, past, cases=(case,))
"""


def test_the_command(tmp_path, capsys):
    (tmp_path / "own.py").write_text(FILE)
    lines = tmp_path / f"{GENERATION}.jsonl"
    own = ["bounds", str(tmp_path / "own.py"), "--json", str(lines)]
    assert main([*own, "--composite", "right"]) == 0
    assert "ok    right, 5x33-19x33" in capsys.readouterr().out
    assert main(own) == 1
    printed = capsys.readouterr().out
    assert "wrong wrong, 5x33-19x33" in printed
    assert "x[i * 33 + j + 15]: element 165 of 165" in printed
    assert [json.loads(line)["ok"] for line in lines.read_text().splitlines()] == [True, False]
    assert main(["bounds", "--tables", str(lines)]) == 0
    tables = capsys.readouterr().out
    assert "| right | 1 |" in tables
    assert "| wrong | 5x33-19x33 | inside | x | i \\* 33 + j + 15 | element 165 of 165" in tables
    assert "| fence after |  |  | crashed: the process ended by SIGSEGV |" in tables

    before = lines.read_text()
    assert main([*own, "--resume"]) == 1, "one of before is wrong, or is found so again"
    printed = capsys.readouterr().out
    assert "right, 5x33" not in printed, "known"
    assert "wrong wrong, 5x33-19x33" in printed, "the last one may lack kernels"
    assert "1 kernels and 1 from before" in printed
    assert [json.loads(line)["ok"] for line in lines.read_text().splitlines()] == [True, False]
    assert lines.read_text().splitlines()[0] == before.splitlines()[0]


def test_what_it_is_to_go_on_with(capsys):
    assert main(["bounds", "--resume"]) == 1
    assert "--resume: expected a file of --json" in capsys.readouterr().err
