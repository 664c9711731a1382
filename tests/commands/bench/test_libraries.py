"""`selfbyoc bench` of a library, and of a model that is no ONNX file: who is timed, and on what. No
time is asserted.
"""

import re

import numpy as np
import pytest

from selfbyoc import emit, op
from selfbyoc.__main__ import main
from selfbyoc.tvm import GENERATION, tir, tvm

W = np.random.default_rng(0).standard_normal((17, 33), np.float32)
MINE = """
from selfbyoc import Composite, op

mine = Composite("mine", lambda x, w: op.relu(op.dense(x, w)))
"""


def written(folder, rows=5):
    shapes = {"x": ((rows, 33), "float32"), "w": (W.shape, "float32")}
    mod = emit(lambda x, w: op.relu(op.dense(x, w)), shapes, {"w": W})
    path = folder / "net.json"
    path.write_text(tvm.ir.save_json(mod))
    return path


@pytest.fixture(autouse=True)
def few_windows(compiler, monkeypatch):
    monkeypatch.setattr("selfbyoc.commands.bench.files.QUICK", 2)
    monkeypatch.setattr("selfbyoc.commands.bench.files.WINDOWS", 2)


def compiled(path):
    library = path.with_suffix(".so")
    assert main(["compile", str(path), "-o", str(library)]) == 0
    return library


def times(capsys, *args):
    """(file, by, ms) of each line of the table."""
    capsys.readouterr()
    assert main(["bench", *map(str, args)]) == 0
    text = capsys.readouterr().out
    assert re.search(r"on (one thread|\d+ threads), windows of 20 ms in turns", text)
    rows = re.findall(r"^(\S+) +│ (.*?) +│ +([\d.]+)\*? │", text, re.MULTILINE)
    assert all(float(ms) > 0 for _, _, ms in rows)
    return [(file, who) for file, who, _ in rows]


def test_libraries_by_themselves(tmp_path, capsys):
    one = compiled(written(tmp_path))
    two = tmp_path / "two.so"
    two.write_bytes(one.read_bytes())
    assert times(capsys, one, two, "--quick") == [("net.so", "selfbyoc"), ("two.so", "selfbyoc")]


def test_a_model_against_tvm_alone(tmp_path, capsys):
    (tmp_path / "mine.py").write_text(MINE)
    path, both = written(tmp_path), [("net.json", "selfbyoc"), ("net.json", "TVM alone")]
    assert times(capsys, path) == both
    assert times(capsys, path, "--composites", tmp_path / "mine.py") == both
    assert times(capsys, path, compiled(path)) == [*both, ("net.so", "selfbyoc")]


def test_an_exported_program(tmp_path, capsys):
    path = tmp_path / "net.pt2"
    if GENERATION == "relay":
        path.write_bytes(b"")
        assert main(["bench", str(path)]) == 1
        assert "(Relay) reads no exported programs of PyTorch" in capsys.readouterr().err
        return
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.Linear(33, 17), torch.nn.ReLU()).eval()
    torch.export.save(torch.export.export(net, (torch.zeros(5, 33),)), path)
    assert times(capsys, path) == [("net.pt2", "selfbyoc"), ("net.pt2", "TVM alone")]


@pytest.mark.skipif(GENERATION == "relay", reason="Relay's graph executor has fixed sizes")
def test_open_sizes(tmp_path, capsys):
    path = compiled(written(tmp_path, tir.Var("rows", "int64")))
    assert main(["bench", str(path)]) == 1
    said = capsys.readouterr().err
    assert said.endswith("fix them, for example --shape 'x=1x33'\n")
    assert times(capsys, path, "--shape", "x=3x33") == [("net.so", "selfbyoc")]


def test_what_is_wrong(tmp_path, capsys):
    path = written(tmp_path)
    library = compiled(path)
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "a.onnx").write_bytes(b"")
    (tmp_path / "a.so").write_bytes(b"text")
    for args, said in (
        (["--target", "llvm"], "--target: it is for a model; net.so is built already"),
        (["--composites", tmp_path / "mine.py"], "--composites: it is for a model"),
        (["--peers", "openvino"], "--peers: of ONNX models, and net.so is none"),
        (["--json", tmp_path / "b.json"], "--json: of ONNX models"),
        (["--models"], "--models: of the suite"),
        (["--shape", "y=1x2"], "--shape: no input 'y'; expected x"),
        (["--shape", "x=5x34"], "input 'x': expected float32[5, 33], found float32[5, 34]"),
        (["--threads", "999"], "threads: expected 1 to"),
        ([tmp_path / "a.onnx"], "a.onnx and net.so: expected ONNX models alone, or none"),
        ([tmp_path / "a.so"], "a.so cannot be loaded"),
    ):
        capsys.readouterr()
        assert main(["bench", str(library), *map(str, args)]) == 1
        assert said in capsys.readouterr().err


def test_ones_own_composites_in_the_benchmark_of_models(tmp_path, capsys, monkeypatch):
    pytest.importorskip("onnx")
    from onnx_models import dense, saved

    from selfbyoc.commands.bench import run as running
    from selfbyoc.commands.bench.measure import Method
    from selfbyoc.commands.bench.records import read_report
    from selfbyoc.commands.bench.roof import Roof

    quick = Method(turns=1, windows=2, window=0.001, warm=0.001)
    roof = Roof(1, 100.0, {"memory": 10.0}, 2.0, {})
    monkeypatch.setattr(running, "_roofs", lambda setting, method: (roof,))
    monkeypatch.setattr("selfbyoc.commands.bench.command.Method", lambda: quick)
    (tmp_path / "mine.py").write_text(MINE)
    path, out = str(saved(tmp_path / "net.onnx", dense())), tmp_path / "a.json"
    mine = ["--composites", str(tmp_path / "mine.py")]
    assert main(["bench", path, "--peers", "tvm", *mine, "--json", str(out)]) == 0
    assert read_report(out).rows[0].ours.note == "1 mine"
    assert main(["bench", path, *mine, "--json", str(out), "--resume"]) == 1
    assert "a report does not say with which --composites" in capsys.readouterr().err
