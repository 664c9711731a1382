"""The zoo's command with `--open`: what is asked of a trial, and what the document says."""

import importlib
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

TOOLS = Path(__file__).parents[2] / "tools"

# Stands in for tools/zoo.py: it tells how it was called.
CHILD = """
import json, sys
with open(sys.argv[sys.argv.index("--to") + 1], "a") as file:
    told = {"outcome": "right", "facts": {"open": "batch", "asked": " ".join(sys.argv[1:])}}
    if "--no-time" not in sys.argv:
        told["times"] = {"open": 1.5, "static": 1.2}
    file.write(json.dumps(told) + "\\n")
"""


@pytest.fixture
def zoo(monkeypatch):
    """The parts by name."""
    monkeypatch.syspath_prepend(str(TOOLS))
    names = ("model", "record", "process", "document", "open_document", "catalogue", "truth")
    parts = {n: importlib.import_module(f"zoo_models.{n}") for n in names}
    return SimpleNamespace(command=importlib.import_module("zoo"), **parts)


@pytest.fixture
def run(zoo, monkeypatch, tmp_path):
    """Options -> what was asked of the trials, by model; their results stay between calls."""
    script, page = tmp_path / "child.py", tmp_path / "models.md"
    script.write_text(CHILD)
    page.write_text("<!-- zoo --><!-- end zoo -->")
    monkeypatch.setattr(zoo.process, "SCRIPT", script)
    monkeypatch.setattr(zoo.command, "RESULTS", tmp_path / "zoo.jsonl")
    monkeypatch.setattr(zoo.command, "OPEN_RESULTS", tmp_path / "zoo-open.jsonl")
    made = zoo.model.Model
    models = [made("net", "a", lambda size: None), made("file", "b", lambda size: None, True)]
    monkeypatch.setattr(zoo.catalogue, "FAMILIES", {"a": lambda: models})

    def ran(*options):
        path = tmp_path / "zoo-open.jsonl"
        before = len(path.read_text().splitlines()) if path.exists() else 0
        monkeypatch.setattr(sys, "argv", ["zoo.py", "--open", "--write", str(page), *options])
        assert zoo.command.main() == 0
        lines = path.read_text().splitlines()[before:]
        return {r["key"]: r["facts"]["asked"].split() for r in map(json.loads, lines)}

    return ran


def test_what_is_asked_of_a_trial(run, tmp_path):
    asked = run("--no-time")
    assert list(asked) == ["a/net"]  # a file has the sizes that it has
    assert {"--open", "--no-time"} <= set(asked["a/net"])
    assert run("--no-time") == {}  # it goes on where it was
    assert "--no-time" not in run("--again")["a/net"]
    assert not (tmp_path / "zoo.jsonl").exists()
    assert (
        "0.80 of static" not in (tmp_path / "models.md").read_text()
    )  # no row without a static one


def test_only_times(run):
    run("--no-time")
    assert "--no-time" not in run("--times")["a/net"]
    assert run("--times") == {}


@pytest.mark.parametrize("options", [(), ("--list",)])
def test_without_open_nothing_changes(zoo, options, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["zoo.py", *options])
    args = zoo.command._arguments()
    assert (args.results.name, args.seconds) == ("zoo.jsonl", 600.0)
    monkeypatch.setattr(sys, "argv", ["zoo.py", "--open", "--seconds", "7", *options])
    args = zoo.command._arguments()
    assert (args.results.name, args.seconds) == ("zoo-open.jsonl", 7.0)


def opened(zoo):
    record = zoo.record.Record
    batch, text = {"open": "batch"}, {"open": "sequence", "at": "7"}
    times = {"open": 2.0, "static": 1.5}
    found = [
        record(
            "a/right",
            "small",
            "right",
            facts=batch,
            processor={"build": 12.2},
            fallbacks=["conv2d: none", "conv2d: of 9"],
        ),
        record("a/timed", "small", "right", facts=batch, seconds={"build": 7.0}, times=times),
        record("a/wrong", "small", "wrong", "", "selfbyoc", "batch 2: off", facts=batch),
        record("a/refused", "small", "failed", "run", "selfbyoc", "InputError: n", facts=text),
        record("a/broken", "small", "failed", "build", "selfbyoc", "TypeError: n", facts=text),
        record("a/closed", "small", "failed", "export", "torch.export", "batch is 1", facts=batch),
    ]
    return {record.key: record for record in found}


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("right", "batch, right, 12 s"),
        ("timed", "batch, right, 7 s, 0.75 of static"),
        ("wrong", "batch, wrong, 0 s"),
        ("refused", "sequence, refused, 0 s"),
        ("broken", "sequence, fails: build"),
        ("closed", "PyTorch does not export it"),
        ("unknown", ""),
    ],
)
def test_a_cell(zoo, name, told):
    assert zoo.open_document.open_cell(opened(zoo).get(f"a/{name}")) == told


def test_the_counts(zoo):
    counts, _, speeds, _, without = zoo.open_document.open_lines(opened(zoo), list(opened(zoo)))
    assert counts == (
        "6 models tried, 5 exported by PyTorch with the size open; of these 4 (80%) built, 2 (40%) "
        "right at every size, 1 wrong, 1 refused in a call. 3 of all that fails is ours."
    )
    assert speeds == "1 timed beside a static build: median 0.75 of its speed, least 0.75."
    assert without == "Without a kernel of all sizes, and in how many models: `conv2d` (1)."
    assert zoo.open_document.open_lines({}, ["a/b"]) == ["No model was tried with an open size."]


def test_the_tables(zoo):
    static = {"a/timed": zoo.record.Record("a/timed", "small", "right")}
    text = zoo.document.markdown(static, list(opened(zoo)), {}, opened(zoo))
    (row,) = [line for line in text.splitlines() if line.startswith("| timed |")]
    assert row.endswith("| batch, right, 7 s, 0.75 of static |")
    after = text.split("## Open sizes")[1].split("##")[0]
    assert "| torch.export | export |  | batch is 1 | a/closed |" in after


def of_pictures(zoo, off):
    """The judge of a model of which PyTorch computes these pictures so far off; each is a 1."""
    made, truth = importlib.import_module("zoo_models.open_truth"), zoo.truth
    exact = np.ones((len(off), 3))
    known = truth.Truth((), [exact], [exact + np.array(off)[:, None]], 1.0)
    calm = made._calm(made._Pictures(list(range(len(off))), known))
    return made.Judge(calm.judged, len(off) - len(calm.rows))


def test_a_picture_that_proves_nothing(zoo):
    judge = of_pictures(zoo, [0, 1e-6, 0.5, *[0] * 9])
    assert judge.left_out == 1
    found = np.ones((3, 3), "float32")
    found[2] = 7  # whatever it is
    assert judge.judged(3, [found])["reason"] == ""
    found[1] = 1.1
    assert judge.judged(3, [found])["reason"].startswith("off by 1.0e-01")


@pytest.mark.parametrize("off", [[0, 0.5, 0.5, *[0] * 9], [0.5, *[0] * 11]])
def test_a_model_that_proves_nothing(zoo, off):
    """Too many of its pictures do not, or the first, which is a batch of 1."""
    with pytest.raises(ValueError, match=r"off by 5\.0e-01 in float32, with [12] of 12 pictures"):
        of_pictures(zoo, off)
