"""`bench MODEL.onnx --start`: a new process's seconds until its first answer, and its memory."""

import pytest

pytest.importorskip("onnx")

from onnx_models import FLOAT, model, saved, value
from rich.console import Console

from selfbyoc.__main__ import main
from selfbyoc.commands.bench.command import Request, show
from selfbyoc.commands.bench.own import own_workloads
from selfbyoc.commands.bench.records import OURS
from selfbyoc.commands.bench.setting import make_setting
from selfbyoc.commands.bench.start import PROGRAMS, read_starts, starts_of
from selfbyoc.errors import InputError


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    y, z = (value(name, FLOAT, 2, 5) for name in "yz")
    graph = model([("Relu", ["y"], "z", {})], [y], [z])
    return saved(tmp_path_factory.mktemp("start") / "model.onnx", graph)


def test_everybody_starts(file):
    """Steps are parts of the whole, memory of its peak."""
    said = []
    (workload,) = own_workloads([file])
    starts = starts_of(workload, make_setting(threads=1), said.append, turns=1)
    assert OURS in starts.found
    assert {*starts.found, *starts.failed} == {*PROGRAMS}
    for start in starts.found.values():
        assert 0 < start.imports + start.loads + start.calls < start.whole
        assert 10 < start.resident <= start.peak * 1.01
    assert starts.found[OURS].file * 1e6 > file.stat().st_size
    assert min(starts.compiled) > 0
    assert said[-1].endswith("turn 1 of 1")


def test_who_fails_is_told(file, tmp_path, monkeypatch, capsys):
    broken = PROGRAMS["onnxruntime"]
    text = {"imported": "raise ValueError('not today')", "loaded": "", "called": ""}
    monkeypatch.setitem(PROGRAMS, "onnxruntime", type(broken)(**text))
    written = tmp_path / "starts.json"
    assert not main(["bench", str(file), "--start", "--json", str(written), "--quick"])
    assert "onnxruntime: ValueError: not today" in capsys.readouterr().out
    (starts,) = read_starts(written)
    assert starts.model == "model"
    assert starts.failed["onnxruntime"] == "ValueError: not today"


@pytest.mark.parametrize("other", [["--builds", "2"], ["--lengths", "n=1"], ["--target", "llvm"]])
def test_options_of_other_measurements(other, file, capsys):
    assert main(["bench", str(file), "--start", *other]) == 1
    assert f"{other[0]}: not beside --start" in capsys.readouterr().err


def test_it_needs_a_model():
    with pytest.raises(InputError, match=r"--start is of a MODEL\.onnx"):
        show(Console(), Request(start=True))
