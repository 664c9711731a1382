"""The package in examples/: built, installed in a folder, and its composites taken from there."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from selfbyoc.__main__ import main

ROOT = Path(__file__).parents[2]
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
OFFLINE = ["--no-index", "--no-deps"]
USES = """
import numpy as np
import selfbyoc
from selfbyoc import emit, op
from selfbyoc.tvm import tvm

def model(x, weight, bias):
    y = op.bias_add(op.dense(x, weight), bias)
    return op.softmax(op.multiply(y, op.sigmoid(op.multiply(y, 1.702))))

print([c.name for c in selfbyoc.installed()])
rng = np.random.default_rng(0)
weights = {"weight": rng.standard_normal((17, 33), np.float32), "bias": np.ones(17, np.float32)}
mod = emit(model, {"x": (9, 33)}, weights)
parted = selfbyoc.partition_for_tefuse(mod, composites="installed")
print(selfbyoc.report(parted).counts)
open("parted.json", "w").write(tvm.ir.save_json(parted))
library = selfbyoc.build(parted)
library.export_library("model.so")
x = rng.standard_normal((9, 33), np.float32)
(found,), (alone,) = library(x), selfbyoc.build(mod, composites=[])(x)
np.testing.assert_allclose(found, alone, rtol=1e-4, atol=1e-5)
np.save("x.npy", x)
np.save("y.npy", found)
"""
ELSEWHERE = """
import numpy as np
import selfbyoc
from selfbyoc.tvm import tvm

print(selfbyoc.installed())
(found,) = selfbyoc.load("model.so")(np.load("x.npy"))
np.testing.assert_array_equal(found, np.load("y.npy"))
try:
    selfbyoc.build(tvm.ir.load_json(open("parted.json").read()))
except selfbyoc.errors.SelfbyocError as err:
    print(err)
"""


def run(command, where, *path):
    """What it printed."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([*map(str, path), str(ROOT), *sys.path])}
    done = subprocess.run(
        list(map(str, command)), env=env, cwd=where, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def installed(source, folder):
    """Where a package is, built from a copy: nothing is left beside the sources."""
    shutil.copytree(source, folder / "source")
    wheel = [*PIP, "wheel", "--no-build-isolation", *OFFLINE, "-w", "wheels", "./source"]
    run(wheel, folder)
    (path,) = (folder / "wheels").iterdir()
    run([*PIP, "install", *OFFLINE, "--target", "site", path], folder)
    return folder / "site"


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """The example, installed; the environment has setuptools of its own or none."""
    pytest.importorskip("setuptools", minversion="61", reason="needs setuptools 61")
    return installed(ROOT / "examples/clip_composites", tmp_path_factory.mktemp("package"))


def test_its_composites_are_found_and_used(example, tmp_path):
    """A library needs the package no more; a partitioned module is refused by a name without."""
    names, counts = run([sys.executable, "-c", USES], tmp_path, example).splitlines()
    assert names == "['clip_dense_quick_gelu', 'clip_conv2d_quick_gelu']"
    assert "'clip_dense_quick_gelu': 1" in counts
    none, refused = run([sys.executable, "-c", ELSEWHERE], tmp_path).splitlines()
    assert none == "[]"
    assert "'tefuse.clip_dense_quick_gelu' is not registered" in refused


def test_the_commands_find_them(example, tmp_path):
    selfbyoc = [sys.executable, "-m", "selfbyoc"]
    listed = run([*selfbyoc, "composites", "--composites", "installed"], tmp_path, example)
    assert "clip_conv2d_quick_gelu" in listed
    assert "clip" not in run([*selfbyoc, "composites"], tmp_path, example)
    cases = ["bounds", "--composites", "installed", "--composite", "clip_dense_quick_gelu"]
    assert "clip_dense_quick_gelu" in run([*selfbyoc, *cases], tmp_path, example)


def test_what_new_writes_is_one(example, tmp_path, monkeypatch):
    """A second package beside the first; each is there."""
    monkeypatch.chdir(tmp_path)
    assert main(["new", "mine", "--package"]) == 0
    mine = installed(tmp_path / "mine", tmp_path)
    show = [sys.executable, "-c", "import selfbyoc; print([c.name for c in selfbyoc.installed()])"]
    found = run(show, tmp_path, mine, example)
    assert found == "['clip_dense_quick_gelu', 'clip_conv2d_quick_gelu', 'mine']\n"


def test_it_is_well_declared(vocabulary_as_before):
    from selfbyoc.analysis.lint.linter import lint_file

    assert lint_file(ROOT / "examples/clip_composites/clip_composites.py") == []


def test_a_process_of_its_own_finds_them(example, tmp_path):
    """Of the command `verify`."""
    code = USES.partition("parted =")[0] + 'open("net.json", "w").write(tvm.ir.save_json(mod))'
    run([sys.executable, "-c", code], tmp_path, example)
    options = ["--composites", "installed", "--kind", "random"]
    verify = [sys.executable, "-m", "selfbyoc", "verify", "net.json", *options]
    assert "clip_dense_quick_gelu" in run(verify, tmp_path, example)
