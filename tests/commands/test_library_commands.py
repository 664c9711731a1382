"""`selfbyoc compile`, `run` and `show`: from a model's file to numbers, each in 80 columns."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import selfbyoc
from selfbyoc import emit, op
from selfbyoc.__main__ import main
from selfbyoc.commands.model.run import _file_names
from selfbyoc.tvm import GENERATION, tvm

SHAPES = {"x": ((5, 33), "float32"), "w": ((17, 33), "float32")}
RNG = np.random.default_rng(0)
X, W = (RNG.standard_normal(shape).astype("float32") for shape, _ in SHAPES.values())

MINE = """
from selfbyoc import Composite, op

mine = Composite("mine", lambda x, w: op.relu(op.dense(x, w)))
"""


def program(x, w):
    return op.relu(op.dense(x, w))


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    """A module as TVM writes it, with weights."""
    path = tmp_path_factory.mktemp("model") / "net.json"
    path.write_text(tvm.ir.save_json(emit(program, SHAPES, {"w": W})))
    return path


@pytest.fixture(scope="module")
def library(module, compiler):
    path = module.with_name("net.so")
    assert main(["compile", str(module), "-o", str(path)]) == 0
    return path


def test_compile_tells_where_the_time_went(module, compiler, tmp_path, capsys):
    text = printed(capsys, "compile", module, "-o", tmp_path / "net.so", "--times")
    rows = [line.split("│")[0].strip() for line in text.splitlines() if line.count("│") == 2]
    assert rows == [
        "reading the model", "matching composites", "laying out weights", "compiling kernels",
        "compiling what is between them", "writing the library",
    ]  # fmt: skip


@pytest.fixture
def narrow(monkeypatch):
    monkeypatch.setattr("selfbyoc.__main__.WIDTH", 80)


def printed(capsys, *args):
    status = main(list(map(str, args)))
    found = capsys.readouterr()
    assert status == 0, found.err
    return found.out


def refused(capsys, *args):
    """The one line of an error."""
    assert main(list(map(str, args))) == 1
    found = capsys.readouterr()
    assert found.err.startswith("error: ")
    assert found.err.count("\n") == 1
    return found.err


def test_compile(module, compiler, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = printed(capsys, "compile", module)
    assert text.startswith("1 kernel of composites holds ")
    assert "wrote net.so: " in text
    np.testing.assert_allclose(
        selfbyoc.load("net.so")(X)[0], np.maximum(X @ W.T, 0), rtol=1e-4, atol=1e-5
    )


def test_compile_for_a_target_with_composites(module, compiler, tmp_path, capsys):
    (tmp_path / "mine.py").write_text(MINE)
    path, target = tmp_path / "new" / "net.so", "llvm -mcpu=nehalem"
    mine = ("--composites", tmp_path / "mine.py")
    printed(capsys, "compile", module, "-o", path, *mine, "--target", target)
    again = selfbyoc.load(path)
    assert (again.report.counts, str(again.target.attrs["mcpu"])) == ({"mine": 1}, "nehalem")
    assert "mine" in printed(capsys, "show", path)
    for command in ("show", "explain", "melting"):
        assert "mine" in printed(capsys, command, module, *mine)


def test_run(library, tmp_path, capsys, narrow):
    np.save(tmp_path / "x.npy", X)
    out = tmp_path / "out"
    text = printed(capsys, "run", library, "--input", f"x={tmp_path / 'x.npy'}", "--output", out)
    for part in ("float32[5, 33]", "float32[5, 17]", "ms a call", f"wrote {out / 'output.npy'}"):
        assert part in text
    np.testing.assert_allclose(
        np.load(out / "output.npy"), np.maximum(X @ W.T, 0), rtol=1e-4, atol=1e-5
    )
    assert max(map(len, text.replace(str(out), "").splitlines())) <= 80


def test_run_makes_up_the_same_inputs_twice(library, capsys):
    ranges = []
    for seed in (3, 3, 4):
        text = printed(capsys, "run", library, "--seed", seed)
        assert f"seed {seed}" in text
        ranges.append([line for line in text.splitlines() if " to " in line])
    assert ranges[0] == ranges[1] != ranges[2]


def test_show(module, library, capsys, narrow):
    version = f"selfbyoc {selfbyoc.__version__}, TVM {tvm.__version__} ({GENERATION})"
    for path, built in ((module, "here"), (library, "built by")):
        text = printed(capsys, "show", path)
        for part in (f"{built}: {version}", "target: llvm", "x │ float32[5, 33]",
                     "output │ float32[5, 17]", "dense", "left to TVM: nothing"):  # fmt: skip
            assert part in " ".join(text.split())
        assert max(map(len, text.splitlines())) <= 100  # the target's line is not broken


def test_show_reads_the_note_alone(library, capsys, monkeypatch):
    """Neither code of another CPU nor anything else of the file is loaded."""
    monkeypatch.setattr("selfbyoc.machine.host.cannot_run", lambda target: "it may use avx1024")
    monkeypatch.setattr("selfbyoc.runtime.loading.native_module", None)
    text = printed(capsys, "show", library)
    assert "not for this machine: it may use avx1024" in text


# ---- models


def test_an_onnx_model_with_open_sizes(compiler, tmp_path, capsys):
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper

    make = helper.make_tensor_value_info
    inputs = [make("in.1", TensorProto.FLOAT, ("batch", 5))]
    outputs = [make("last/hidden", TensorProto.FLOAT, ("batch", 5))]
    graph = helper.make_graph(
        [helper.make_node("Softmax", ["in.1"], ["last/hidden"], axis=1)], "g", inputs, outputs
    )
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), tmp_path / "m.onnx")
    path = tmp_path / "m.so"
    printed(capsys, "compile", tmp_path / "m.onnx", "-o", path, "--shape", "in.1=3x5")
    printed(capsys, "run", path, "--output", tmp_path)
    np.testing.assert_allclose(np.load(tmp_path / "last_hidden.npy").sum(1), 1, rtol=1e-5)
    if GENERATION == "relay":
        return
    assert "float32[batch, 5]" in printed(capsys, "show", tmp_path / "m.onnx")
    printed(capsys, "compile", tmp_path / "m.onnx", "-o", path)
    said = refused(capsys, "run", path)
    assert "input 'in.1' has dynamic sizes: fix them, for example --shape 'in.1=1x5'" in said
    assert "float32[7, 5]" in printed(capsys, "run", path, "--shape", "in.1=7x5")


def test_an_exported_program(compiler, tmp_path, capsys):
    torch = pytest.importorskip("torch")
    if GENERATION == "relay":
        (tmp_path / "net.pt2").write_bytes(b"")
        said = refused(capsys, "compile", tmp_path / "net.pt2")
        assert "(Relay) reads no exported programs of PyTorch; expected an ONNX file" in said
        return
    net = torch.nn.Sequential(torch.nn.Linear(33, 17), torch.nn.ReLU()).eval()
    x = torch.from_numpy(X)
    torch.export.save(torch.export.export(net, (x,)), tmp_path / "net.pt2")
    printed(capsys, "compile", tmp_path / "net.pt2", "-o", tmp_path / "net.so")
    (found,) = selfbyoc.load(tmp_path / "net.so")(x, results="same")
    torch.testing.assert_close(found, net(x).detach(), rtol=1e-4, atol=1e-5)
    (tmp_path / "no.pt2").write_bytes(b"zip")
    assert "no.pt2 is no exported program" in refused(capsys, "show", tmp_path / "no.pt2")


# ---- what is wrong


def test_wrong_files(module, library, tmp_path, capsys):
    for command, name in (("compile", "a.onnx"), ("run", "a.so"), ("show", "a.so")):
        said = refused(capsys, command, tmp_path / name)
        assert f"{name} cannot be read: No such file or directory" in said
    (tmp_path / "a.so").write_bytes(b"text")
    assert "a.so cannot be loaded" in refused(capsys, "run", tmp_path / "a.so")
    assert "a.so: another tool wrote it" in refused(capsys, "show", tmp_path / "a.so")
    for text in ("", "{}", '{"main": 3}'):
        (tmp_path / "a.json").write_text(text)
        assert "is no module in TVM's JSON" in refused(capsys, "show", tmp_path / "a.json")
    said = refused(capsys, "show", library, "--target", "llvm")
    assert "--target: it is for a model; net.so is built already" in said
    said = refused(capsys, "compile", module, "--shape", "x=1x2")
    assert ("has the shapes" if GENERATION == "relay" else "the shape given is 1x2") in said
    assert "net.so is a library, built already" in refused(capsys, "compile", library)
    said = refused(capsys, "run", module)
    assert "net.json is no library; build one: selfbyoc compile" in said
    (tmp_path / "bad.py").write_text("x =")
    said = refused(capsys, "compile", module, "--composites", tmp_path / "bad.py")
    assert "bad.py:1: invalid syntax: x =" in said


def test_wrong_inputs(library, tmp_path, capsys):
    np.save(tmp_path / "x.npy", X.T)
    np.savez(tmp_path / "x.npz", X)
    (tmp_path / "text.npy").write_text("text")
    np.save(tmp_path / "object.npy", np.array([None]), allow_pickle=True)
    for given, said in (
        ("x=x.npy", "input 'x': expected float32[5, 33], found float32[33, 5]"),
        ("y=x.npy", "--input: no input 'y'; expected x"),
        ("x=none.npy", "none.npy cannot be read: No such file or directory"),
        ("x=text.npy", "text.npy is no .npy file"),
        ("x=object.npy", "object.npy is no .npy file"),
        ("x=x.npz", "expected one array (.npy), found an archive of them"),
    ):
        name, _, file = given.partition("=")
        assert said in refused(capsys, "run", library, "--input", f"{name}={tmp_path / file}")
    twice = ("--input", f"x={tmp_path / 'x.npy'}") * 2
    assert "--input: an input has two files" in refused(capsys, "run", library, *twice)
    both = refused(capsys, "run", library, *twice[:2], "--shape", "x=1x2")
    assert "--shape: input 'x' has the shape of its file" in both
    assert "--shape: no input 'y'" in refused(capsys, "run", library, "--shape", "y=1x2")
    with pytest.raises(SystemExit) as ended:
        main(["run", str(library), "--input", "x.npy"])
    assert ended.value.code == 2
    assert "expected NAME=FILE.npy, found 'x.npy'" in capsys.readouterr().err


def test_outputs_have_names_of_files():
    assert _file_names(["y", "a/b", "../c", "ä" * 300]) == [
        "y.npy", "a_b.npy", "___c.npy", "_" * 100 + ".npy",
    ]  # fmt: skip
    assert _file_names(["a/b", "a.b"]) == ["0-a_b.npy", "1-a_b.npy"]


# ---- the process


def process(folder, *args, script=False):
    """The command line in a process of its own that cannot import TVM."""
    (folder / "tvm").mkdir(exist_ok=True)
    (folder / "tvm" / "__init__.py").write_text("raise SystemExit('TVM was imported')")
    (folder / "selfbyoc").write_text(
        "import sys\nfrom selfbyoc.__main__ import main\nsys.exit(main())\n"
    )
    start = [str(folder / "selfbyoc")] if script else ["-m", "selfbyoc"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder / "."), *sys.path])}
    command = [sys.executable, *start, *map(str, args)]
    return subprocess.run(
        command, env={**env, "COLUMNS": "80"}, capture_output=True, text=True, cwd=folder.parent
    )


@pytest.mark.parametrize("script", [False, True], ids=["module", "script"])
def test_what_needs_no_tvm(tmp_path, script):
    for args, status, said in (
        (["--help"], 0, "selfbyoc compile model.onnx --shape images=1x3x224x224"),
        (["--version"], 0, f"selfbyoc {selfbyoc.__version__}"),
        (["run", "--help"], 0, "run model.so --input x=x.npy --output results"),
        (["nosuch"], 2, "invalid choice: 'nosuch'"),
        (["compile", "a.onnx", "--shape", "x=8,8"], 2, "argument --shape: expected NAME=1x3x224"),
        (["run", "none.so"], 1, "error: none.so cannot be read: No such file or directory"),
        (["explain", "none.onnx"], 1, "error: none.onnx cannot be read: No such file"),
        (["bench", "none.onnx"], 1, "error: none.onnx cannot be read: No such file"),
    ):
        done = process(tmp_path, *args, script=script)
        assert (done.returncode, "TVM was" in done.stderr) == (status, False), done.stderr
        assert said in done.stdout + done.stderr
        assert max(map(len, done.stdout.splitlines()), default=0) <= 80
    done = process(tmp_path, "cache", script=script)
    assert "TVM was imported" in done.stderr  # the test can fail


def test_a_transcript(module, compiler, tmp_path):
    """In processes of their own: the names that are imported late are the library's."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    for args in (["compile", str(module)], ["show", "net.so"], ["run", "net.so", "--output", "."]):
        command = [sys.executable, "-m", "selfbyoc", *args]
        done = subprocess.run(command, env=env, capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stderr[-3000:]
    assert (tmp_path / "output.npy").exists()


def test_the_readmes_lines(compiler, tmp_path):
    """From an ONNX file to numbers."""
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper

    make = helper.make_tensor_value_info
    inputs = [make("images", TensorProto.FLOAT, ("batch", 3, "height", "width"))]
    outputs = [make("scores", TensorProto.FLOAT, ("batch", 3, 1, 1))]
    node = helper.make_node("GlobalAveragePool", ["images"], ["scores"])
    opset = [helper.make_opsetid("", 17)]
    model = helper.make_model(
        helper.make_graph([node], "g", inputs, outputs), opset_imports=opset, ir_version=8
    )
    onnx.save(model, tmp_path / "model.onnx")
    text = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    (lines,) = re.findall(r"^```py\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", lines]
    done = subprocess.run(command, env=env, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip().endswith("'float32'),) (1, 3, 1, 1)")
    assert "'images'" in done.stdout
    assert "'scores'" in done.stdout
