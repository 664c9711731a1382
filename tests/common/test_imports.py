"""What `import selfbyoc` imports, and when the rest comes."""

import os
import subprocess
import sys

import numpy as np
import pytest

import selfbyoc
from selfbyoc import op
from selfbyoc.common.after_import import after_import
from selfbyoc.common.without import without
from selfbyoc.tvm import GENERATION


def told(code, *arguments, **env):
    """What a process of its own prints."""
    own, command = {**os.environ, **env}, [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, env=own, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_no_tvm_before_a_name_is_asked_for():
    code = "import selfbyoc, sys; print('tvm' in sys.modules, 'numpy' in sys.modules); "
    code += "selfbyoc.Composite; print('tvm' in sys.modules)"
    assert told(code) == ["False", "False", "True"]


def test_submodules_and_all_names():
    code = "import selfbyoc; print(selfbyoc.errors.InputError.__name__, 'build' in dir(selfbyoc)); "
    code += "print(hasattr(selfbyoc, 'nothing'), hasattr(selfbyoc, '__nothing__'))"
    assert told(code) == ["InputError", "True", "False", "False"]


@pytest.mark.parametrize("first", ["import selfbyoc, tvm", "import tvm, selfbyoc"])
def test_a_program_that_imports_tvm_itself_has_the_external_compiler(first):
    code = f"{first}; print(tvm.get_global_func('{GENERATION}.ext.tefuse') is not None)"
    assert told(code) == ["True"]


def test_the_passes_alone_have_it():
    code = "from selfbyoc.transform import Partition; import tvm; "
    code += f"print(tvm.get_global_func('{GENERATION}.ext.tefuse') is not None)"
    assert told(code) == ["True"]


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A small library."""
    weight = np.random.default_rng(0).standard_normal((10, 64), np.float32)
    inputs = {"x": ((8, 64), "float32"), "weight": (weight.shape, "float32")}
    program = lambda x, weight: op.softmax(op.dense(x, weight))  # noqa: E731
    mod = selfbyoc.emit(program, inputs, {"weight": weight})
    path = tmp_path_factory.mktemp("library") / "model.so"
    selfbyoc.build(mod).export_library(path)
    return path


CALLED = """
import sys, numpy as np, selfbyoc
library = selfbyoc.load(sys.argv[1])
(y,) = library(np.ones((8, 64), "float32"))
library.prepared(np.ones((8, 64), "float32"))()
print(y.shape == (8, 10), "tvm" in sys.modules)
"""


def test_a_library_is_loaded_and_called_without_tvm(file):
    assert told(CALLED, file) == ["True", "False"]


def test_what_a_note_holds_is_made_when_it_is_asked_for(file):
    """And TVM, which is imported then, takes over what is loaded."""
    code = (
        CALLED
        + """
print(library.report.counts, library.target.kind)
x = np.ones((8, 64), "float32")
print((library(x)[0] == y).all())
session = library.session()
print(session(session.tensor(x))[0].numpy().shape == y.shape)
"""
    )
    assert told(code, file)[2:] == ["{'dense':", "1,", "'softmax':", "1}", "llvm", "True", "True"]


def test_run_imports_no_tvm(file):
    code = "import sys; from selfbyoc.__main__ import main; assert not main(['run', sys.argv[1]]); "
    code += "print('tvm' in sys.modules)"
    assert told(code, file)[-1] == "False"


def test_tvm_imports_no_pytorch():
    pytest.importorskip("torch")
    code = "import selfbyoc, sys; selfbyoc.build; print('torch' in sys.modules); import torch; "
    code += "print(torch.ones(1).item())"
    here = os.pathsep.join(p for p in sys.path if "no_torch" not in p)  # which hides it from tests
    assert told(code, PYTHONPATH=here) == ["False", "1.0"]


def test_what_comes_behind_an_import(tmp_path, monkeypatch):
    (tmp_path / "late_package.py").write_text("value = 1")
    monkeypatch.syspath_prepend(tmp_path)
    seen, finders = [], list(sys.meta_path)
    after_import("late_package", lambda: seen.append(sys.modules["late_package"].value))
    import late_package  # noqa: F401
    import late_package as again  # noqa: F401

    assert seen == [1]
    assert sys.meta_path == finders


def test_a_package_is_hidden_and_found_again(tmp_path, monkeypatch):
    (tmp_path / "hidden_package.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    with without("hidden_package"), pytest.raises(ImportError):
        import hidden_package
    import hidden_package

    with without("hidden_package"):  # what is there stays
        assert sys.modules["hidden_package"] is hidden_package
