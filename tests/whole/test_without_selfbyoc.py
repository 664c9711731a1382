"""The examples in C++ are built by their own lines and run what `compile` wrote; so does a Python
that has TVM's runtime alone, without its compiler.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from harness import served

from selfbyoc import emit, op
from selfbyoc.__main__ import main
from selfbyoc.runtime.system_compiler import does_not_compile
from selfbyoc.tvm import GENERATION, tir, tvm

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / f"run_{GENERATION}.cc"
RNG = np.random.default_rng(0)
X, W = RNG.standard_normal((9, 65), np.float32), RNG.standard_normal((20, 65), np.float32)
NAMES = ["x"] if GENERATION == "relay" else []  # Relay's executor goes by names

KINDS = ("float32", "float16")  # of weights in the file


def expected(x, weights="float32"):
    scores = np.exp(x @ W.astype(weights).astype("float32").T)
    return scores / scores.sum(1, keepdims=True)


def compiled(folder, rows=9, weights="float32"):
    """What the command makes of a dense layer and a softmax."""
    shapes = {"x": ((rows, 65), "float32"), "w": (W.shape, "float32")}
    mod = emit(lambda x, w: op.softmax(op.dense(x, w)), shapes, {"w": W})
    (folder / "model.json").write_text(tvm.ir.save_json(mod))
    path = folder / "model.so"
    options = ["-o", str(path), "--weights", weights]
    assert main(["compile", str(folder / "model.json"), *options]) == 0
    return path


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The example, built by the lines in its comment."""
    served(does_not_compile("g++"))
    folder = tmp_path_factory.mktemp("cpp")
    text = EXAMPLE.read_text(encoding="utf-8")
    lines = re.search(r"^TVM=.*?(?=^\./run )", text, re.DOTALL | re.MULTILINE)[0]
    shutil.copy(EXAMPLE, folder)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    command = ["bash", "-e", "-c", lines]
    done = subprocess.run(
        command, env={**os.environ, "PATH": path}, cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return folder / "run"


def run(program, path, x, *names):
    sizes = "x".join(map(str, x.shape))
    command = [str(program), path.name, *names, sizes]
    return subprocess.run(command, input=x.tobytes(), cwd=path.parent, capture_output=True)


@pytest.mark.parametrize("weights", KINDS)
def test_a_program_in_cpp(program, tmp_path, weights):
    done = run(program, compiled(tmp_path, weights=weights), X, *NAMES)
    assert done.returncode == 0, done.stderr
    found = np.frombuffer(done.stdout, np.float32).reshape(9, 20)
    np.testing.assert_allclose(found, expected(X, weights), rtol=1e-4, atol=1e-6)


@pytest.mark.skipif(GENERATION == "relay", reason="Relay's graph executor has fixed sizes")
def test_a_program_in_cpp_with_open_sizes(program, tmp_path):
    path = compiled(tmp_path, rows=tir.Var("rows", "int64"))
    for rows in (1, 7):
        done = run(program, path, X[:rows])
        assert done.returncode == 0, done.stderr
        found = np.frombuffer(done.stdout, np.float32).reshape(rows, 20)
        np.testing.assert_allclose(found, expected(X[:rows]), rtol=1e-4, atol=1e-6)


def test_a_program_in_cpp_says_what_is_wrong(program, tmp_path):
    path = compiled(tmp_path)
    for x, told in ((X[:3], b"3 vs. 9" if GENERATION == "relax" else b""), (X[:, :3], b"")):
        done = run(program, path, x, *NAMES)
        assert done.returncode == 1
        assert told in done.stderr
        assert done.stdout == b""
    none = run(program, path.with_name("none.so"), X, *NAMES)
    assert (none.returncode, b"none.so" in none.stderr) == (1, True)
    if NAMES:
        assert b"no input y" in run(program, path, X, "y").stderr


RUNTIME_ALONE = {
    "relax": """
import sys
import numpy as np
import tvm
from tvm.runtime.vm import VirtualMachine

machine = VirtualMachine(tvm.runtime.load_module(sys.argv[1]), tvm.cpu())
found = machine["main"](tvm.runtime.tensor(np.load("x.npy")))
assert tvm.base._RUNTIME_ONLY
np.save("y.npy", found.numpy())
""",
    "relay": """
import sys
import numpy as np
import tvm
from tvm.contrib.graph_executor import GraphModule

model = GraphModule(tvm.runtime.load_module(sys.argv[1])["default"](tvm.cpu()))
model.run(x=np.load("x.npy"))
assert tvm._ffi.base._RUNTIME_ONLY
np.save("y.npy", model.get_output(0).numpy())
""",
}


@pytest.mark.parametrize("weights", KINDS)
def test_python_with_the_runtime_alone(compiler, tmp_path, weights):
    path = compiled(tmp_path, weights=weights)
    np.save(tmp_path / "x.npy", X)
    hide = "import sys; sys.modules['selfbyoc'] = None\n"
    command = [sys.executable, "-c", hide + RUNTIME_ALONE[GENERATION], str(path)]
    env = {**os.environ, "TVM_USE_RUNTIME_LIB": "1"}
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    np.testing.assert_allclose(
        np.load(tmp_path / "y.npy"), expected(X, weights), rtol=1e-4, atol=1e-6
    )


@pytest.mark.parametrize("generation", ["relax", "relay"])
def test_the_document_quotes_the_example(generation):
    example = (ROOT / "examples" / f"run_{generation}.cc").read_text(encoding="utf-8")
    text = (ROOT / "docs" / "deployment.md").read_text(encoding="utf-8")
    _, _, section = text.partition(f"`examples/run_{generation}.cc`")
    quoted = re.findall(r"^```(?:cpp|sh)\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)[:2]
    assert len(quoted) == 2
    for block in quoted:
        assert block in example


@pytest.mark.skipif(GENERATION == "relay", reason="Relay calls no Python")
def test_what_needs_python_is_named(compiler, tmp_path, capsys):
    from tvm import relax

    builder, x = relax.BlockBuilder(), relax.Var("x", relax.TensorType((9,), "float32"))
    with builder.function("main", [x]):
        once = builder.emit(relax.op.unique(builder.emit(relax.op.nn.relu(x)), sorted=True))
        builder.emit_func_output(once)
    (tmp_path / "model.json").write_text(tvm.ir.save_json(builder.get()))
    path = tmp_path / "model.so"
    said = "needs Python with tvm.relax: relax.run.unique"
    for command in (["compile", str(tmp_path / "model.json"), "-o"], ["show"]):
        capsys.readouterr()
        assert main([*command, str(path)]) == 0
        assert said in capsys.readouterr().out
    compiled(tmp_path)
    assert said not in capsys.readouterr().out


BESIDE = """
import ctypes, os, sys
import numpy as np
ctypes.CDLL(sys.argv[1], os.RTLD_GLOBAL | os.RTLD_LAZY)
import selfbyoc

np.save("y.npy", selfbyoc.load(sys.argv[2])(np.load("x.npy"))[0])
"""


def test_a_file_beside_one_whose_names_all_see(compiler, tmp_path):
    """What a file widens is its own, not what another one has under the name that TVM looks for."""
    (tmp_path / "wide").mkdir()
    (tmp_path / "half").mkdir()
    paths = compiled(tmp_path / "wide"), compiled(tmp_path / "half", weights="float16")
    np.save(tmp_path / "x.npy", X)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", BESIDE, *map(str, paths)]
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    wanted = expected(X, "float16")
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), wanted, rtol=1e-4, atol=1e-6)
