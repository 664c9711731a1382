"""`export_library` without a compiler, or with one that fails: a typed error and no half file."""

import os
import stat
import subprocess
import sys

import numpy as np
import pytest

import selfbyoc
from selfbyoc import emit, op
from selfbyoc.errors import InputError

PROGRAM = """
import sys
import numpy as np
import selfbyoc
from selfbyoc import emit, op
from selfbyoc.errors import TargetError

x = np.ones((3, 17), "float32")
library = selfbyoc.build(emit(lambda x: op.softmax(x), {"x": (x.shape, "float32")}), cache=False)
assert abs(library(x)[0].sum() - 3) < 1e-5  # it is built, and called, without one
try:
    library.export_library(sys.argv[1])
except TargetError as err:
    print(err)
"""


def library():
    return selfbyoc.build(emit(lambda x: op.softmax(x), {"x": ((3, 17), "float32")}), cache=False)


def test_without_a_compiler(tmp_path):
    env = {k: v for k, v in os.environ.items() if k not in ("CXX", "CC")}
    env |= {"PATH": str(tmp_path), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "model.so")]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
    assert "export_library needs a C++ compiler: found none; expected g++" in done.stdout
    assert (done.returncode, list(tmp_path.iterdir())) == (0, []), done.stderr[-2000:]


@pytest.fixture
def bad_compiler(tmp_path, monkeypatch):
    """It writes half of a large library, as on a full disk."""
    found = tmp_path / "bin" / "c++"
    found.parent.mkdir()
    found.write_text(
        '#!/bin/sh\ncase "$*" in *answer.cc*) exec g++ "$@";; esac\n'
        'while [ $# -gt 0 ]; do [ "$1" = -o ] && echo half > "$2"; shift; done\n'
        "echo '/usr/bin/ld: final link failed: No space left on device' >&2; exit 1\n"
    )
    found.chmod(found.stat().st_mode | stat.S_IXUSR)
    from selfbyoc.runtime.system_compiler import _CC

    monkeypatch.setattr(_CC, "get_cc", lambda: str(found))


def test_a_linker_that_fails(bad_compiler, tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "model.so").write_text("old")
    with pytest.raises(InputError, match=r"model\.so cannot be written: .*No space left on device"):
        library().export_library(folder / "model.so")
    assert [p.name for p in folder.iterdir()] == ["model.so"]
    assert (folder / "model.so").read_text() == "old"


def test_a_folder_in_its_place(tmp_path):
    (tmp_path / "model.so").mkdir()
    with pytest.raises(InputError, match=r"model\.so cannot be written: .*found a directory"):
        library().export_library(tmp_path / "model.so")
    assert [p.name for p in tmp_path.iterdir()] == ["model.so"]


def test_it_replaces_what_was_there(tmp_path):
    path, found = tmp_path / "new" / "model.so", library()
    x = np.ones((3, 17), "float32")
    for _ in range(2):
        found.export_library(path)
        np.testing.assert_array_equal(selfbyoc.load(path, found)(x)[0], found(x)[0])
    assert [p.name for p in path.parent.iterdir()] == ["model.so"]
