"""A library that is dropped gives its memory and its file back: a server may swap models."""

import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

import selfbyoc
from selfbyoc import emit, op
from selfbyoc.codegen import pack
from selfbyoc.runtime import native

IS_LINUX = sys.platform == "linux"
SHAPES = {"x": (4, 33), "w": (17, 33), "k": (8, 3, 3, 3), "image": (1, 3, 9, 9)}
RNG = np.random.default_rng(3)
GIVEN = {name: RNG.standard_normal(shape, np.float32) for name, shape in SHAPES.items()}


def program(x, image, w, k):
    return op.relu(op.dense(x, w)), op.relu(op.conv2d(image, k)), x


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    constants = {name: GIVEN[name] for name in "wk"}
    library = selfbyoc.build(emit(program, SHAPES, constants))
    folder = tmp_path_factory.mktemp("dropped")
    library.export_library(folder / "model.so")
    np.savez(folder / "inputs.npz", x=GIVEN["x"], image=GIVEN["image"])
    return folder / "model.so"


DROPPED = """
import gc, os, shutil, sys, threading
import numpy as np
import selfbyoc

path, inputs = sys.argv[1:]
given = [*np.load(inputs).values()]
wanted = selfbyoc.load(path)(*given)
gc.disable()  # nothing waits for the collector

def mapped():
    with open("/proc/self/maps") as lines:
        return [line for line in lines if "/swapped" in line]

def uses(name, with_session):
    library = selfbyoc.load(name)
    kept = [library(*given)]
    thread = threading.Thread(target=lambda: kept.append(library(*given)))
    thread.start()
    thread.join()
    try:
        library(given[0][:2], given[1])
    except selfbyoc.errors.InputError as err:
        kept.append(err.with_traceback(None))
    if with_session:
        session = library.session()
        kept.append(session(*map(session.tensor, given)))
        try:
            session(*map(session.tensor, given[::-1]))
        except Exception as err:  # of the kernels' own checks
            kept.append(err.with_traceback(None))
    return kept

for n in range(6):
    if n == 3:  # TVM's first error maps the symbols of all that is loaded then, for good
        uses(path, True)
    name = f"{os.path.dirname(path)}/swapped_{n % 4}.so"
    shutil.copyfile(path, name)
    first, second, error, *others = uses(name, n > 2)
    os.remove(name)
    assert not mapped(), (n, mapped())
    for one in (first, second):
        assert all(np.array_equal(a, b) for a, b in zip(one, wanted, strict=True))
    assert "expected" in str(error)
    for tensor, array in zip(others[0] if others else [], wanted):
        assert np.array_equal(tensor.numpy(), array)
    assert len(others) == 2 * (n > 2) and all(map(str, others[1:]))
print("dropped")
"""


@pytest.mark.skipif(not IS_LINUX, reason="what is mapped is asked of Linux")
def test_a_file_is_unmapped_with_its_library(file):
    """tvm_ffi kept each until the process ended; what it gave out lives on."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", DROPPED, str(file), str(file.parent / "inputs.npz")]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "dropped\n"), done.stderr[-2000:]


def test_packing_kernels_are_of_few_builds(monkeypatch):
    """Each is a module of machine code; a build of other shapes has others."""
    for n in range(9):
        shapes = {"x": (4, 33), "w": (17 + n, 33)}
        w = RNG.standard_normal(shapes["w"], np.float32)
        selfbyoc.partition_for_tefuse(emit(lambda x, w: op.dense(x, w), shapes, {"w": w}))
    assert len(pack._modules) == pack._modules.maxlen == 8


@pytest.mark.skipif(not IS_LINUX, reason="what is mapped is asked of Linux")
def test_files_that_are_gone_are_forgotten(file, tmp_path, monkeypatch):
    """All but those that are mapped, and the last."""
    monkeypatch.setattr(native, "_MANY", 0)
    before = set(native._loaded)
    held = selfbyoc.load(file)
    for n in range(3):
        path = tmp_path / f"model_{n}.so"
        shutil.copyfile(file, path)
        library = selfbyoc.load(path)
        library(GIVEN["x"], GIVEN["image"])
        del library
    gone = {(tmp_path / f"model_{n}.so").resolve() for n in range(2)}
    assert not gone & set(native._loaded)
    assert set(native._loaded) <= {*before, file.resolve(), path.resolve()}
    assert held.file == file
