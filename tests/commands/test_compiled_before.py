"""`selfbyoc compile` of what was compiled before: the file that is there, if all is as it was."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx_models import FLOAT, model, random, value

import selfbyoc
from selfbyoc.__main__ import main
from selfbyoc.errors import ModelWarning

W, X = random(32, 48), random(5, 32)
SAME = "as it was compiled before"


def dense(weight=W, rows=5):
    nodes = [("MatMul", ["x", "w"], "d", {}), ("Relu", ["d"], "y", {})]
    ends = [value("x", FLOAT, rows, 32)], [value("y", FLOAT, rows, 48)]
    return model(nodes, *ends, w=weight)


@pytest.fixture
def here(tmp_path, monkeypatch, compiler):
    """A folder with a model and a cache."""
    monkeypatch.setenv("SELFBYOC_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    onnx.save(dense(), "net.onnx")
    return tmp_path


@pytest.fixture
def compiled(capsys):
    def run(*args, model="net.onnx"):
        assert main(["compile", model, *args]) == 0
        return capsys.readouterr().out

    return run


def right(path, weight=W):
    (found,) = selfbyoc.load(path)(X)
    np.testing.assert_allclose(found, np.maximum(X @ weight, 0), rtol=1e-4, atol=1e-5)


def test_it_stays_where_it_is_and_is_copied_to_where_it_is_asked_for(here, compiled):
    first, before = compiled(), (here / "net.so").stat()
    assert SAME not in first
    again = compiled()
    assert SAME in again
    assert again.splitlines()[0] == first.splitlines()[0]
    assert (here / "net.so").stat().st_mtime_ns == before.st_mtime_ns
    assert SAME in compiled("-o", "a/other.so")
    assert (here / "a/other.so").read_bytes() == (here / "net.so").read_bytes()
    right("a/other.so")


def test_another_model_or_option_is_compiled(here, compiled):
    compiled()
    assert SAME not in compiled("--weights", "float16")
    assert SAME not in compiled("--target", "llvm -mcpu=haswell")
    other = random(32, 48) + 1
    onnx.save(dense(other), "net.onnx")
    assert SAME not in compiled()
    right("net.so", other)


def test_another_machine_or_environment_is_another_library(here, compiled, monkeypatch):
    compiled()
    assert SAME in compiled()
    with monkeypatch.context() as patch:
        patch.setenv("SELFBYOC_CPU", "haswell")
        assert SAME not in compiled("-o", "haswell.so")
    with monkeypatch.context() as patch:
        patch.setattr(os, "sched_getaffinity", lambda _: set(range(64)))
        assert SAME not in compiled("-o", "many.so")


def test_a_file_that_changed_or_is_gone_is_compiled_anew(here, compiled):
    compiled()
    data = bytearray((here / "net.so").read_bytes())
    data[-1] ^= 1
    (here / "net.so").write_bytes(data)
    assert SAME not in compiled()
    right("net.so")
    (here / "net.so").unlink()
    assert SAME not in compiled()


def test_what_is_not_known_without_compiling_is_compiled(here, compiled, monkeypatch):
    (here / "records.jsonl").write_text("")
    compiled()
    assert SAME not in compiled("--times")
    with monkeypatch.context() as patch:
        patch.setenv("SELFBYOC_RECORDS", str(here / "records.jsonl"))
        assert SAME not in compiled()
    with monkeypatch.context() as patch:
        patch.setenv("SELFBYOC_CACHE", "off")
        assert SAME not in compiled()


@pytest.mark.parametrize("name", ["weights.bin", "a" * 200, "ä b"])
def test_weights_in_a_file_beside_the_model(here, compiled, name):
    onnx.save(dense(), "net.onnx", save_as_external_data=True, size_threshold=0, location=name)
    assert SAME not in compiled()
    assert SAME in compiled()
    other = random(32, 48) + 1
    weights = bytearray((here / name).read_bytes())
    place = weights.index(W.tobytes())
    weights[place : place + W.nbytes] = other.tobytes()
    (here / name).write_bytes(weights)
    assert SAME not in compiled()
    right("net.so", other)
    assert SAME in compiled()
    (here / name).unlink()
    assert main(["compile", "net.onnx"]) == 1


def test_a_location_that_nobody_can_tell(here, compiled):
    """It is no key with a name after it: not known which files there are."""
    odd = dense()
    odd.doc_string = "location"
    onnx.save(odd, "net.onnx")
    for _ in range(2):
        assert SAME not in compiled()


def test_a_file_that_changes_while_it_is_compiled(here, compiled, monkeypatch):
    def changing(*args, **options):
        onnx.save(dense(W + 1), "net.onnx")
        return selfbyoc.build(*args, **options)

    with monkeypatch.context() as patch:
        patch.setattr("selfbyoc.commands.model.compile.build", changing)
        compiled()
    onnx.save(dense(), "net.onnx")
    assert SAME not in compiled()


def test_what_warns_is_compiled_and_warns_again(here, compiled, monkeypatch):
    def warning(*args, **options):
        warnings.warn(ModelWarning("odd"), stacklevel=2)
        return selfbyoc.build(*args, **options)

    monkeypatch.setattr("selfbyoc.commands.model.compile.build", warning)
    for _ in range(2):
        with pytest.warns(ModelWarning, match="odd"):
            assert SAME not in compiled()


def test_tvm_is_not_imported_for_it(here, compiled):
    compiled()
    code = "import sys; from selfbyoc.__main__ import main; main(['compile', 'net.onnx']); "
    run = [sys.executable, "-c", f"{code} print('tvm' in sys.modules)"]
    env = {**os.environ, "PYTHONPATH": str(Path(selfbyoc.__file__).parents[1])}
    done = subprocess.run(run, capture_output=True, text=True, check=True, env=env)
    assert SAME in done.stdout
    assert done.stdout.splitlines()[-1] == "False"
