"""`python -m selfbyoc tune` and `records`: what they show, in a terminal and without one."""

import io
import json

import pytest
from rich.console import Console

import selfbyoc
from selfbyoc import Composite, op
from selfbyoc.__main__ import main
from selfbyoc.codegen.records.record import CHOSEN, MEASURED, WRONG, Record, append
from selfbyoc.codegen.tuning_record import Tuned
from selfbyoc.commands.tune import command as tune_command
from selfbyoc.commands.tune.progress import clock, shown
from selfbyoc.commands.tune.tables import changed, gain_line, short, space_of
from selfbyoc.tuning.progress import Outcome, Progress, Tuning

pytest.importorskip("onnx")


def rows(sch, ops, target):
    row, _ = sch.get_loops(ops.relu.block)
    sch.split(row, [None, selfbyoc.choose("rows", (1, 2, 5), 5)])


FUSED = Composite("dense_relu", lambda x, w: op.relu(op.dense(x, w)), rows)
MOVES = Composite("transpose", lambda x: op.transpose(x, axes=(1, 0)))
LAST = Composite("softmax", lambda x: op.softmax(x))


@pytest.fixture
def model(tmp_path, monkeypatch):
    """Twice dense and relu of one shape, a transpose and a softmax, in a file."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    nodes, weights, last = [], [], "x"
    for i in range(2):
        weight = np.random.default_rng(i).standard_normal((30, 30)).astype("float32")
        weights.append(numpy_helper.from_array(weight, f"w{i}"))
        nodes.append(helper.make_node("Gemm", [last, f"w{i}"], [f"d{i}"], transB=1))
        nodes.append(helper.make_node("Relu", [f"d{i}"], [last := f"r{i}"]))
    nodes.append(helper.make_node("Transpose", [last], ["t"], perm=[1, 0]))
    nodes.append(helper.make_node("Softmax", ["t"], ["y"], axis=-1))
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in
            (("x", (10, 30)), ("y", (30, 10)))]  # fmt: skip
    graph = helper.make_graph(nodes, "network", ends[:1], ends[1:], weights)
    found = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = tmp_path / "network.onnx"
    onnx.save(found, path)

    def partition(mod, params=None, target=None, composites=None):
        return selfbyoc.partition_for_tefuse(mod, params, target, [FUSED, MOVES, LAST])

    monkeypatch.setattr(tune_command, "partition_for_tefuse", partition)
    return path


class Fake:
    """In place of the tuner: calls nothing and measures nothing, and says what it was asked."""

    def __call__(self, mod, target, trials, work_dir, *, progress, **asked):
        self.asked = {"trials": trials, **asked}
        options = {n: asked[n] for n in ("include_simple_tasks", "min_ops")}
        outcomes = []
        self.tasks = tasks = selfbyoc.extract_tasks(mod, target, **options)
        for number, task in enumerate(tasks):
            told = {"rows": 2} if "rows" in task.variant().choices else {}
            best = 0.5e-3 if told else 1e-3
            record = record_of(task, told, best)
            append(work_dir, record)
            for done in range(1, trials + 1):
                progress(told_by(len(tasks), number, task, done, trials, best, number * trials))
            progress(told_by(len(tasks), number + 1, task, trials, trials, best, number * trials))
            outcomes.append(Outcome(task, trials, 1 - number, number, 1e-3, best, record))
        return Tuning(tuple(outcomes), 12.5)


def record_of(task, told, best, **changed):
    facts = {
        "workload": task.key, "composite": task.composite.name, "about": str(task),
        "place": task.place, "status": CHOSEN, "decisions": told, "seconds": best,
        "default_seconds": 1e-3, "made_by": {"date": "2026-11-20T17:01:02+00:00"},
    }  # fmt: skip
    if "code" not in changed:
        facts["code"] = task.variant(Tuned(told)).code
    return Record(**{**facts, **changed})


def told_by(tasks, over, task, done, trials, best, before):
    return Progress(
        tasks, over, str(task), before + done, tasks * trials, done, best, 1e-3, 65.0, 3700.0
    )


@pytest.fixture
def fake(monkeypatch):
    found = Fake()
    monkeypatch.setattr(tune_command, "tune", found)
    return found


def run(*args):
    return main([*map(str, args)])


def test_list(model, capsys):  # C14
    assert run("tune", model, "--list") == 0
    printed = capsys.readouterr().out
    assert [line.split(":")[0].strip() for line in printed.splitlines()[2:4]] == [
        "dense_relu", "softmax",
    ]  # fmt: skip
    first = printed.splitlines()[2]
    assert [cell.strip() for cell in first.split("│")][1:] == ["2", "2", "rows: 3 ways"]
    assert "1 of 3 tasks are left out" in printed
    assert "MetaSchedule's space" in printed
    assert run("tune", model, "--list", "--all") == 0
    every = capsys.readouterr().out
    assert "transpose: " in every
    assert "left out" not in every
    assert run("tune", model, "--list", "--min-ops", 2) == 0
    assert "softmax" not in capsys.readouterr().out


def test_one_line_a_task_without_a_terminal(model, fake, tmp_path, capsys):
    out = tmp_path / "found.json"
    assert run("tune", model, "--trials", 3, "--records", tmp_path / "rec", "--json", out) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("1/6 trials in 1:05, 1:01:40 left; dense_relu: ")
    ends = [line for line in lines if line.startswith("done: ")]
    assert [line.split(":")[1] for line in ends] == [" dense_relu", " softmax"]
    assert ends[0].endswith("best 0.5 ms, by hand 1 ms (2.00x), 3 trials")
    table = [[c.strip() for c in line.split("│")] for line in lines if line.count("│") == 6]
    assert [row[1:] for row in table] == [
        ["2", "3 (1 failed)", "1", "0.5", "2.00x", "rows 5 -> 2"],
        ["1", "3 (1 wrong)", "1", "1", "1.00x", ""],
    ]
    assert lines[-2] == "3 kernels of the model: 3 ms by hand, 2 ms tuned (1.50x); tuning took 12 s"
    assert "with selfbyoc.apply_records(" in lines[-1]
    found = json.loads(out.read_text())
    assert [o["changed"] for o in found["outcomes"]] == ["rows 5 -> 2", ""]
    assert [o["key"] for o in found["outcomes"]] == [t.key for t in fake.tasks]


def test_for_real(model, tmp_path, capsys):
    """The tuner itself, on the kernel with something to choose; a second run finds all of it."""
    options = ["--min-ops", 2, "--trials", 9, "--records", tmp_path / "rec"]
    for again in (False, True):
        assert run("tune", model, *options) == 0
        lines = capsys.readouterr().out.splitlines()
        cells = [line.split("│") for line in lines if line.count("│") == 6]
        (row,) = [row for row in cells if row[0].strip()]  # "cannot tell" goes over two lines
        assert [cell.strip() for cell in row[1:3]] == ["2", "3"], lines
        assert float(row[4]) <= float(row[3])
        count = len((tmp_path / "rec" / "records.jsonl").read_text().splitlines())
        assert count == 4, again  # three candidates and what was chosen


def test_what_the_tuner_is_asked(model, fake, tmp_path):
    options = ["--seconds", 9, "--space", "metaschedule", "--all", "--min-ops", 2]
    assert run("tune", model, "--records", tmp_path / "rec", *options) == 0
    assert fake.asked == {
        "trials": 64, "seconds": 9.0, "space": "metaschedule", "include_simple_tasks": True,
        "min_ops": 2, "tracker": None,
    }  # fmt: skip


def test_in_a_terminal(model, fake, tmp_path):
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=200)
    asked = tune_command.Request(model, 2, tmp_path / "rec")
    tune_command.show(console, asked)
    printed = text.getvalue()
    assert "2/2 tasks, 1:01:40 left" in printed
    assert "4/4" in printed
    assert "2/2 tasks" in printed
    assert "softmax: " in printed


def test_nothing_to_tune(model, fake, tmp_path, capsys):
    assert run("tune", model, "--min-ops", 9, "--records", tmp_path / "rec") == 0
    assert "3 of 3 tasks are left out" in capsys.readouterr().out
    assert not hasattr(fake, "asked")
    assert not (tmp_path / "rec").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--tracker", "here", "--key", "pi"], "tracker: expected HOST:PORT, found 'here'"),
        (["--tracker", "here:9190"], "--tracker: expected --key too"),
        (["--key", "pi"], "--key: it names machines of a tracker"),
        (["--target", "nothing"], "target: 'nothing' is not a target"),
    ],
)
def test_wrong_options(model, fake, options, message, capsys):
    assert run("tune", model, *options) == 1
    assert message in capsys.readouterr().err


def task(model):
    from selfbyoc.models.onnx_model import import_onnx, read_onnx

    mod = import_onnx(read_onnx(model))
    done = tune_command.partition_for_tefuse(mod, target=selfbyoc.host_target())
    return selfbyoc.extract_tasks(done)[0]


def test_records(model, tmp_path, capsys, monkeypatch):
    first, folder = task(model), tmp_path / "rec"
    elsewhere = type(first.place)("relay", {"kind": "llvm", "mcpu": "other"}, 64)
    append(folder, record_of(first, {}, 1e-3, status=MEASURED))
    append(folder, record_of(first, {"rows": 2}, 0.5e-3, status=MEASURED))
    append(folder, record_of(first, {"rows": 2}, 0.5e-3))
    append(folder, record_of(first, {}, 1e-3, place=elsewhere))
    with (folder / "records.jsonl").open("a") as file:
        file.write("no record\n")
    assert run("records", folder) == 0
    printed = capsys.readouterr().out
    table = [[c.strip() for c in line.split("│")] for line in printed.splitlines()]
    assert [row[1:] for row in table if len(row) == 7] == [
        ["2", "1", "0.5", "2.00x", "2026-11-20 17:01", "yes"],
        ["0", "1", "1", "1.00x", "2026-11-20 17:01", "no"],
    ]
    assert f"llvm -mcpu=other, 64 cores, relay (this is {first.place})" in printed
    assert "line 5 is not read" in printed


def test_records_beside_a_model(model, tmp_path, capsys, monkeypatch):
    from selfbyoc.commands.tune import records as records_command

    monkeypatch.setattr(records_command, "partition_for_tefuse", tune_command.partition_for_tefuse)
    first, folder = task(model), tmp_path / "rec"
    append(folder, record_of(first, {"rows": 2}, 0.5e-3))
    append(folder, record_of(first, {}, 1e-3, workload="of another model"))
    assert run("records", folder, model) == 0
    printed = capsys.readouterr().out
    ends = [line.split("│")[-1].strip() for line in printed.splitlines() if line.count("│") == 6]
    assert ends == ["used", "no such kernel"]
    append(folder, record_of(first, {"rows": 2}, 0.5e-3, code="of an older schedule"))
    assert run("records", folder, model) == 1
    assert "its kernel has changed" in " ".join(capsys.readouterr().out.split())


def test_the_status_of_records_says_whether_they_serve_a_model(model, tmp_path, monkeypatch):
    from selfbyoc.commands.tune import records as records_command

    monkeypatch.setattr(records_command, "partition_for_tefuse", tune_command.partition_for_tefuse)
    first = task(model)
    elsewhere = type(first.place)("relay", {"kind": "llvm", "mcpu": "other"}, 64)
    good = record_of(first, {"rows": 2}, 0.5e-3)
    away = record_of(first, {}, 1e-3, place=elsewhere, code="of an older schedule")
    other = record_of(first, {}, 1e-3, workload="of another model")
    wrong = record_of(first, {"rows": 2}, None, status=WRONG)
    for name, given, status in (
        ("shared", [away, other, good], 0),  # what others measured there is no fault
        ("elsewhere", [away, other], 1),
        ("nothing usable", [wrong, other], 1),
    ):
        for record in given:
            append(tmp_path / name, record)
        assert run("records", tmp_path / name, model) == status, name
        assert run("records", tmp_path / name) == 0  # without a model nobody can know


def test_the_help_of_records_says_its_status(capsys):
    with pytest.raises(SystemExit):
        run("records", "--help")
    assert "the exit status is 1 if" in " ".join(capsys.readouterr().out.split())


def test_no_records(tmp_path, capsys):
    assert run("records", tmp_path / "nothing") == 1
    assert "records: there is no" in capsys.readouterr().err
    (tmp_path / "records.jsonl").write_text("no record\n")
    assert run("records", tmp_path) == 1
    assert "line 1 is not read" in capsys.readouterr().out


def test_texts(model):
    first = task(model)
    assert str(short("a: float32[1, 2], int8[7], float32[] -> float32[3]")) == (
        "a: 1x2, int8 7, float32 -> 3"
    )
    assert [clock(s) for s in (5, 65, 3725.9)] == ["0:05", "1:05", "1:02:05"]
    assert changed(first, record_of(first, {"rows": 7}, 1e-3, code="")).startswith("DecisionError")
    assert changed(first, record_of(first, {}, 1e-3, trace=[])) == "a schedule of MetaSchedule's"
    assert gain_line([Outcome(first, 0, 0, 0, None, None, None)]) == "nothing was measured"
    assert space_of(first) == "rows: 3 ways"


def test_a_broken_schedule_is_listed():
    def schedule(sch, ops, target):
        raise ValueError("no idea")

    broken = Composite("dense_relu", FUSED.pattern, schedule)
    mod = selfbyoc.emit(FUSED.pattern, {"x": (10, 30), "w": (30, 30)})
    (one,) = selfbyoc.extract_tasks(selfbyoc.partition_for_tefuse(mod, composites=[broken]))
    assert "its schedule raised ValueError: no idea" in space_of(one)


def test_the_bar_is_not_needed():
    with shown(Console(file=io.StringIO())) as tell:
        tell(Progress(1, 0, "a: float32[1] -> float32[1]", 1, 2, 1, None, None, 1.0, None))
