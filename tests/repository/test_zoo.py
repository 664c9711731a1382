"""The zoo's command: what is run again, how a trial's end is read, and the tables."""

import importlib
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

TOOLS = Path(__file__).parents[2] / "tools"

# Stands in for tools/zoo.py: it writes the stage that it came to, and ends as its name says.
CHILD = """
import json, os, sys, time
name, path = sys.argv[sys.argv.index("--trial") + 1], sys.argv[sys.argv.index("--to") + 1]
alone = "--alone" in sys.argv
sys.path.insert(0, {tools!r})

def tell(**data):
    with open(path, "a") as file:
        file.write(json.dumps(data) + "\\n")

tell(stage="make")
tell(stage="build")
if name.endswith("sleeps"):
    time.sleep(60)
if name.endswith("aborts") and not alone:
    os.abort()
if name.endswith("eats"):
    from zoo_models.process import limit_memory
    limit_memory(0.5)
    bytearray(1 << 30)
if name.endswith("raises") or name.endswith("ours") and not alone:
    tell(outcome="failed", stage="build", reason="TypeError: no such layout")
elif name.endswith("importer"):
    tell(outcome="failed", stage="import", reason="Unsupported", op="aten.cumsum")
elif name.endswith("chaotic"):
    tell(outcome="failed", stage="truth", reason="ValueError: PyTorch itself is off by 4.2e-01")
elif name.endswith("wrong") or name.endswith("off") and not alone:
    tell(outcome="wrong", reason="off by 1.0e+00")
else:
    tell(outcome="right")
"""


@pytest.fixture
def zoo(monkeypatch):
    """The parts by name."""
    monkeypatch.syspath_prepend(str(TOOLS))
    names = ("model", "record", "process", "document", "speed", "catalogue")
    return SimpleNamespace(**{n: importlib.import_module(f"zoo_models.{n}") for n in names})


@pytest.fixture
def ends(zoo, monkeypatch, tmp_path):
    """A model's name -> what its trial is told as."""
    script = tmp_path / "child.py"
    script.write_text(CHILD.format(tools=str(TOOLS)))
    monkeypatch.setattr(zoo.process, "SCRIPT", script)

    def tried(name, seconds=60.0):
        model = zoo.model.Model(name, "family", lambda size: None)
        return zoo.process.tried(model, "small", zoo.process.Limits(seconds, 0.5))

    return tried


@pytest.mark.parametrize(
    ("name", "outcome", "stage", "fault"),
    [
        ("fine", "right", "", ""),
        ("raises", "failed", "build", "TVM"),
        ("ours", "failed", "build", "selfbyoc"),
        ("aborts", "failed", "build", "selfbyoc"),
        ("wrong", "wrong", "", "TVM"),
        ("off", "wrong", "", "selfbyoc"),
        ("importer", "failed", "import", "TVM's importer"),
        ("chaotic", "failed", "truth", "the model's package"),
        ("eats", "failed", "build", "the limits"),
    ],
)
def test_the_end_of_a_trial(ends, name, outcome, stage, fault):
    found = ends(name)
    assert (found.outcome, found.stage, found.fault) == (outcome, stage, fault)


def test_how_it_died(ends):
    assert ends("aborts").reason.startswith("crash: SIGABRT")
    assert ends("eats").reason == "memory: more than 0.5 GB"
    assert ends("importer").op == "aten.cumsum"


def test_a_trial_takes_too_long(ends):
    found = ends("sleeps", seconds=1.0)
    assert (found.outcome, found.reason) == ("failed", "timeout: more than 1 s")


def test_records_come_back(zoo, tmp_path):
    path = tmp_path / "build" / "results.jsonl"
    one = zoo.record.Record("a family/one", "small", "wrong", error=0.5, left={"add": 2})
    other = zoo.record.Record("a family/two", "full", "right", error=0.0, ops=7)
    for record in (other, one, zoo.record.Record("a family/one", "small", "right")):
        zoo.record.add_record(path, record)
    with path.open("a") as file:
        file.write('{"key": "a family/three", "si')  # stopped while it wrote
    found = zoo.record.read_records(path)
    assert list(found) == ["a family/two", "a family/one"]
    assert found["a family/one"].outcome == "right"  # the last one counts
    assert found["a family/two"] == other
    assert (other.family, other.name) == ("a family", "two")


def test_what_is_left_to_run(zoo, tmp_path, monkeypatch):
    module = importlib.import_module("zoo")
    model = zoo.model.Model
    models = [model(name, "family", lambda size: None) for name in ("one", "two", "three")]
    path = tmp_path / "results.jsonl"
    for name, size, outcome in (("one", "small", "right"), ("two", "full", "failed")):
        zoo.record.add_record(path, zoo.record.Record(f"family/{name}", size, outcome))

    def left(*options):
        monkeypatch.setattr(sys, "argv", ["zoo.py", "--results", str(path), *options])
        return [m.name for m in module._left(models, module._arguments())]

    assert left() == ["three"]
    assert left("--size", "full") == ["one", "three"]
    assert left("--failed") == ["two"]
    assert left("--again") == ["one", "two", "three"]


def test_a_run_without_timing_keeps_the_times(zoo):
    record = zoo.record.Record
    before = record("a/b", "small", "right", times={"selfbyoc": 2.0}, timed="AMD EPYC, 0123abc")
    after = record("a/b", "small", "wrong", tried="fedcba9", seconds={"build": 9.0})
    kept = zoo.record.with_times_of(after, before)
    assert (kept.outcome, kept.tried) == ("wrong", "fedcba9")
    assert (kept.times, kept.seconds, kept.timed) == ({"selfbyoc": 2.0}, {}, "AMD EPYC, 0123abc")
    for other in (None, record("a/b", "full", "right", times={"selfbyoc": 2.0})):
        assert zoo.record.with_times_of(after, other).times == {}


def test_a_family_that_is_not_here(zoo, monkeypatch):
    def absent():
        raise zoo.model.NotHere("timm is not installed")

    def there():
        return [zoo.model.Model(n, "b", lambda size: None) for n in ("vgg11", "vit")]

    monkeypatch.setattr(zoo.catalogue, "FAMILIES", {"a": absent, "b": there})
    models, why = zoo.catalogue.catalogue(["vgg*", "a/*"])
    assert [m.key for m in models] == ["b/vgg11"]
    assert why == {"a": "timm is not installed"}


def example(zoo):
    record = zoo.record.Record
    return [
        record("timm/right", "small", "right", error=1e-6, theirs=2e-6, live=0.5, ops=20, kernels=3,
               composites={"conv2d": 2, "dense": 1}, left={"add": 4}),
        record("timm/dead", "small", "right", live=0.0, ops=2, composites={"dense": 4}),
        record("onnx/refused", "small", "failed", "import", "TVM's importer", "no | op", "aten.x"),
        record("onnx/broken", "small", "failed", "build", "selfbyoc", "TypeError: x"),
    ]  # fmt: skip


def test_the_tables(zoo):
    records = {r.key: r for r in example(zoo)}
    text = zoo.document.markdown(
        records, [*records, "onnx/later"], {"torchvision": "not installed"}, {}
    )
    lines = text.splitlines()
    assert "| timm | 2 of 2 | small | 2 (100%) | 2 (100%) | 2 (100%) |" in lines
    assert "| onnx | 2 of 3 | small | 1 (50%) | 0 (0%) | 0 (0%) |" in lines
    assert "| all | 4 of 5 | small | 3 (75%) | 2 (50%) | 2 (50%) |" in lines
    assert "- torchvision: left out here, not installed" in lines
    assert "Not run yet (1): onnx/later." in lines
    assert "| TVM's importer | import | `aten.x` | no \\| op | onnx/refused |" in lines
    assert "| `dense` | 5 | 2 |" in lines
    assert "| right | yes | yes | right | 1.0e-06 | 2.0e-06 | 20 | 3 | 4 add |  |" in lines
    assert "| broken | yes | no |  |  |  |  |  |  |  |" in lines
    (dead,) = [line for line in lines if line.startswith("Hardly change")]
    assert "timm/dead" in dead
    assert "timm/right" not in dead


def test_nothing_was_run(zoo):
    assert "0 of 1 models run." in zoo.document.markdown({}, ["timm/a"], {}, {})


def test_the_document_keeps_its_words(zoo, tmp_path):
    path = tmp_path / "models.md"
    path.write_text("# Models\n\n<!-- zoo -->\nold\n<!-- end zoo -->\n\nAfter.\n")
    records = {r.key: r for r in example(zoo)}
    for _ in range(2):
        zoo.document.write_document(path, records, list(records), {}, {})
    text = path.read_text()
    assert text.startswith("# Models\n\n<!-- zoo -->\n\n| family |")
    assert text.endswith("<!-- end zoo -->\n\nAfter.\n")
    assert "old" not in text
    assert text.count("## Speed") == 1


def test_speed(zoo):
    record = zoo.record.Record
    timed = [
        record("a/fast", "full", "right", ops=50, seconds={"partition": 1.0, "build": 4.0},
               times={"selfbyoc": 2.0, "onnxruntime": 4.0, "openvino": 8.0}),
        record("a/slow", "full", "right", times={"selfbyoc": 4.0, "inductor": 2.0},
               timed="AMD EPYC, 0123abc",
               skipped={"openvino": "not installed"}),
        record("a/untimed", "full", "right"),
    ]  # fmt: skip
    lines = zoo.speed.speed_lines(timed)
    summary = "2 of 3 timed: 1 faster than the best peer, geometric mean 1.00, least 0.50."
    assert lines[0] == summary
    assert lines[2] == "1 on a CPU without a name; 1 on AMD EPYC."
    assert lines[6:8] == [
        "| a/slow |  |  | 4 ms | 2 ms | inductor | 0.50 |",
        "| a/fast | 5.0 s | 10 ops | 2 ms | 4 ms | onnxruntime | 2.00 |",
    ]
    assert "- openvino: not installed (1)" in lines
    assert "--no-time" in zoo.speed.speed_lines(timed[2:])[0]


def test_work(zoo):
    works = {"a": 30.0, "b": 2.0, "c": 1.0}
    found = [
        zoo.record.Record(f"f/{n}", "small", "right", ops=100, processor={"build": s, "run": 1.0})
        for n, s in works.items()
    ]
    found.append(zoo.record.Record("f/d", "small", "failed", ops=100, processor={"build": 90.0}))
    *_, line = zoo.speed.work_lines(found)
    assert line.endswith("0.30 in the middle of 3 models; more than 1: f/a 3.1.")
    assert zoo.speed.work_lines([]) == []
