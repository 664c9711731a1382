"""Odd arguments and files: an error of ours in a line and an exit code, never a traceback."""

import os
import shutil
import subprocess
import sys
import sysconfig

import numpy as np
import pytest

import selfbyoc
from selfbyoc import __main__, emit, op
from selfbyoc.__main__ import main
from selfbyoc.commands.model import tensor_table
from selfbyoc.errors import InputError
from selfbyoc.runtime.exporting import versions
from selfbyoc.runtime.integrity import seal
from selfbyoc.runtime.note import Note, write_note

onnx = pytest.importorskip("onnx", reason="the onnx extra is not installed")
from onnx import helper  # noqa: E402

info = helper.make_tensor_value_info
HUGE = "99999999999999999999"
NO_TEXT = b"caf\xe9".decode(errors="surrogateescape")  # no UTF-8, as Linux lets a name be
is_linux = pytest.mark.skipif(sys.platform != "linux", reason="names of any bytes")


def model(nodes, inputs, output):
    """Inputs and the output: (name, shape)."""
    ins, outs = ([info(n, 1, shape) for n, shape in each] for each in (inputs, [output]))
    graph = helper.make_graph(nodes, "net", ins, outs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def relu():
    return model([helper.make_node("Relu", ["x"], ["y"])], [("x", ("n", 4))], ("y", ("n", 4)))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("library") / "tanh.so"
    selfbyoc.build(emit(lambda x: op.tanh(x), {"x": (2, 3)})).export_library(path)
    return path


def noted(folder, note):
    """A sealed library that has our note and nothing else."""
    path = folder / "noted.so"
    compiler = os.environ.get("CXX", sysconfig.get_config_var("CXX") or "g++").split()[0]
    compiler = compiler if shutil.which(compiler) else "g++"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", path, write_note(folder, note)], check=True)
    seal(path)
    return path


def note(count):
    inputs = tuple((f"x{n}", (2, 3), "float32") for n in range(count))
    return Note(None, inputs, (("y", (2, 3), "float32"),), versions())


@pytest.mark.parametrize(
    "command", ["compile net.onnx", "verify net.onnx", "run lib.so", "bench net.onnx"]
)
def test_a_size_that_is_none(folder, library, command, capsys):
    onnx.save(relu(), "net.onnx")
    shutil.copyfile(library, "lib.so")
    with pytest.raises(SystemExit, match="2"):
        main([*command.split(), "--shape", f"x={HUGE}x4"])
    assert "sizes of 1 to 9223372036854775807" in " ".join(capsys.readouterr().err.split())
    with pytest.raises(InputError, match="sizes of 1 to 9223372036854775807"):
        selfbyoc.from_onnx(relu(), {"x": (int(HUGE), 4)})


def test_an_input_that_no_memory_holds(folder, library, monkeypatch, capsys):
    from selfbyoc.commands.bench import inputs

    monkeypatch.setattr(inputs, "_memory", lambda: 47.0)
    assert main(["run", str(library)]) == 1
    assert "float32[2, 3] is more than this machine's memory" in capsys.readouterr().err


@is_linux
def test_a_name_that_is_no_text(folder, library, capsys):
    x, path = np.ones((2, 3), "float32"), f"{NO_TEXT}/{NO_TEXT}.so"
    selfbyoc.load(library).export_library(path)
    np.testing.assert_allclose(selfbyoc.load(path)(x)[0], np.tanh(x), rtol=1e-5)
    assert main(["show", path]) == 0
    built = selfbyoc.build(emit(lambda x: op.tanh(x), {"x": (2, 3)}))
    built.export_library(f"{NO_TEXT}.so")
    np.testing.assert_allclose(selfbyoc.load(f"{NO_TEXT}.so")(x)[0], np.tanh(x), rtol=1e-5)
    with open(f"{NO_TEXT}.onnx", "wb") as file:
        file.write(relu().SerializeToString())
    assert main(["explain", f"{NO_TEXT}.onnx", "--json", f"{NO_TEXT}.json"]) == 0
    assert os.path.exists(f"{NO_TEXT}.json")


CLOSED = {
    ">&-": "error: standard output is closed\n",
    "2>&-": "",
    "<&-": "error: none.so cannot be read: No such file or directory\n",
}


@is_linux
@pytest.mark.parametrize("closes", CLOSED)
def test_what_is_closed(closes):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    code = "import sys; from selfbyoc.__main__ import main; sys.exit(main(['show', 'none.so']))"
    command = ["sh", "-c", f'exec "$0" -c "$1" {closes}', sys.executable, code]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", CLOSED[closes])


def test_a_library_without_an_entry(folder, capsys):
    path = noted(folder, note(1))
    with pytest.raises(InputError, match=r"cannot be loaded: .*no function that runs a model"):
        selfbyoc.load(path)
    assert main(["run", str(path)]) == 1


def test_more_inputs_than_anybody_reads(folder, capsys, monkeypatch):
    """100,000 took a minute."""
    monkeypatch.setattr(tensor_table, "MOST", 3)
    assert main(["show", str(noted(folder, note(1234)))]) == 0
    out = capsys.readouterr().out
    assert "x2 " in out
    assert "and 1,231 more" in out
    assert "x3 " not in out


EQUATIONS = {
    "ii->i": [(3, 3)], "ii": [(3, 3)], "bii->bi": [(2, 3, 3)], "iij,jk->ik": [(3, 3, 4), (4, 5)],
    "ij,jj->ij": [(3, 4), (4, 4)], "i->": [(3,)],
}  # fmt: skip


@pytest.mark.parametrize("equation", EQUATIONS)
def test_diagonals(equation):
    rng = np.random.default_rng(0)
    given = [rng.standard_normal(shape, np.float32) for shape in EQUATIONS[equation]]
    wanted = np.einsum(equation, *given)
    names = "xz"[: len(given)]
    node = helper.make_node("Einsum", [*names], ["y"], equation=equation)
    inputs = [(n, a.shape) for n, a in zip(names, given, strict=True)]
    mod = selfbyoc.from_onnx(model([node], inputs, ("y", wanted.shape)))
    np.testing.assert_allclose(selfbyoc.build(mod)(*given)[0], wanted, rtol=1e-5, atol=1e-6)


def referring(name, kind, op_type, inner=False):
    node = helper.make_node(op_type, ["x"], ["y"])
    node.attribute.add(name=name, ref_attr_name="of_a_function", type=kind)
    if not inner:
        return model([node], [("x", (2, 3))], ("y", (2, 3)))
    body = helper.make_graph([node], "body", [], [info("y", 1, (2, 3))])
    branch = helper.make_node("If", ["c"], ["z"], then_branch=body, else_branch=body)
    made = model([branch], [("x", (2, 3))], ("z", (2, 3)))
    made.graph.input.append(info("c", 9, ()))
    return made


@pytest.mark.parametrize(
    "refers",
    [("axis", 2, "Softmax"), ("value", 4, "Constant"), ("alpha", 1, "LeakyRelu", True)],
)
def test_an_attribute_of_no_function(refers):
    with pytest.raises(
        InputError, match="stands for 'of_a_function' of a function, and is in none"
    ):
        selfbyoc.from_onnx(referring(*refers))


@is_linux
def test_a_model_without_an_end(folder):
    """Neither is read, nor waited for."""
    os.mkfifo("pipe.onnx")
    for path in ("pipe.onnx", "/dev/zero"):
        with pytest.raises(InputError, match="cannot be read: expected a regular file"):
            selfbyoc.from_onnx(path)
    for path in (None, 3, b"model"):
        with pytest.raises(InputError, match="expected a path"):
            selfbyoc.load(path)


def test_what_is_no_library(library):
    for found in (None, "model.so", [1]):
        with pytest.raises(InputError, match="library: expected a Library, found"):
            selfbyoc.Decoder(found)
    with pytest.raises(InputError, match="like: expected a Library, found str"):
        selfbyoc.load(library, "other.so")
    with pytest.raises(InputError, match="kinds: expected a list of names, found int"):
        selfbyoc.verify(emit(lambda x: op.tanh(x), {"x": (2, 3)}), kinds=3)


def test_whatever_an_importer_raises_is_typed(monkeypatch):
    from selfbyoc.models import from_onnx as module

    for raised, kind in ((KeyError("odd"), InputError), (MemoryError("much"), MemoryError)):

        def raises(*_, raised=raised):
            raise raised

        monkeypatch.setattr(module, "expanded", raises)
        with pytest.raises(selfbyoc.errors.SelfbyocError, match=r"the model .*(odd|much)") as found:
            selfbyoc.from_onnx(relu())
        assert isinstance(found.value, kind)


def test_a_fault_of_ours_is_a_line(monkeypatch, capsys):
    """With the traceback on request."""
    monkeypatch.setattr(__main__, "_check_files", lambda args: 1 // 0)
    assert main(["cache"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: ZeroDivisionError: ")
    assert "SELFBYOC_TRACEBACK=1 shows where" in error
    monkeypatch.setenv("SELFBYOC_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        main(["cache"])
