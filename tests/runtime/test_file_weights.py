"""Weights in pages of a file's own, which kernels read there."""

import os
import subprocess
import sys

import numpy as np
import pytest

import selfbyoc
from selfbyoc import emit, op
from selfbyoc.runtime.exporting import files
from selfbyoc.runtime.tolerance import first_wrong
from selfbyoc.tvm import GENERATION, tir

RNG = np.random.default_rng(37)
W, V = (RNG.standard_normal(shape, np.float32) for shape in ((40, 36), (36, 40)))
B, TABLE = RNG.standard_normal(40, np.float32), RNG.standard_normal((6, 36), np.float32)
X = RNG.standard_normal((5, 36), np.float32)


def emitted(program, given, x=X):
    shapes = {n: (array.shape, str(array.dtype)) for n, array in {"x": x, **given}.items()}
    return emit(program, shapes, given)


def chain(x, w, b, v):
    return op.dense(op.relu(op.add(op.dense(x, w), b)), v)


CHAIN = {"w": W, "b": B, "v": V}


def apart(library):
    return files.apart(library.native, library._lowered)[1]


def saved(mod, tmp_path, **how):
    """Built and in a file: both as libraries."""
    built, path = selfbyoc.build(mod, **how), tmp_path / "model.so"
    built.export_library(path)
    return built, selfbyoc.load(path)


def holds(path, values):
    return path.read_bytes().count(np.ascontiguousarray(values).tobytes())


def test_kernels_read_their_weights_in_the_file(tmp_path):
    built, loaded = saved(emitted(chain, CHAIN), tmp_path)
    assert sum(built.report.counts.values()) >= 1
    table = apart(built)
    places = [a for stub in table.stubs.values() for a in stub.arguments]
    assert table.stubs
    assert {-1, *range(len(table.weights))} == set(places)
    held = {w.values.tobytes() for w in table.weights}
    assert B.tobytes() in held
    expected = np.maximum(X @ W.T + B, 0) @ V.T
    assert first_wrong(loaded(X)[0], expected, "float32", 40) is None
    np.testing.assert_array_equal(loaded(X)[0], built(X)[0])
    assert holds(tmp_path / "model.so", B) == 1


def test_what_two_calls_are_given_is_there_once(tmp_path):
    def twice(x, w, v):
        return op.dense(op.tanh(op.dense(op.tanh(op.dense(op.dense(x, w), v)), w)), v)

    given = {"w": W, "v": V}
    built, loaded = saved(emitted(twice, given), tmp_path)
    weights = apart(built).weights
    assert len({w.values.tobytes() for w in weights}) == len(weights)
    np.testing.assert_array_equal(loaded(X)[0], built(X)[0])


def test_equal_bytes_of_other_types_are_two(tmp_path):
    numbers = np.arange(1, 37, dtype="int32")

    def program(x, floats, integers):
        return op.add(op.multiply(x, floats), op.cast(integers, dtype="float32"))

    given = {"floats": numbers.view("float32"), "integers": numbers}
    built, loaded = saved(emitted(program, given), tmp_path)
    np.testing.assert_array_equal(loaded(X)[0], built(X)[0])
    np.testing.assert_allclose(loaded(X)[0], X * given["floats"] + numbers)


def test_a_weight_that_is_a_result_too(tmp_path):
    def program(x, w):
        return op.dense(x, w), w

    built, loaded = saved(emitted(program, {"w": W}), tmp_path)
    for found, expected in zip(loaded(X), built(X), strict=True):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(loaded(X)[1], W)
    loaded(X)[1][:] = 0  # the caller's own
    np.testing.assert_array_equal(loaded(X)[1], W)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "bool", "float16", "float64"])
def test_constants_of_every_type(dtype, tmp_path):
    values = (RNG.integers(0, 2, 36) if dtype == "bool" else RNG.integers(0, 99, 36)).astype(dtype)

    def program(x, values):
        return op.multiply(x, op.cast(values, dtype="float32"))

    built, loaded = saved(emitted(program, {"values": values}), tmp_path)
    np.testing.assert_array_equal(loaded(X)[0], X * values.astype("float32"))
    np.testing.assert_array_equal(loaded(X)[0], built(X)[0])


def test_scalars_and_a_dim_of_one(tmp_path):
    def program(x, one, scale):
        return op.multiply(op.add(x, one), scale)

    given = {"one": np.float32([[1.5]]), "scale": np.array(0.25, np.float32)}
    _, loaded = saved(emitted(program, given), tmp_path)
    np.testing.assert_array_equal(loaded(X)[0], (X + np.float32(1.5)) * np.float32(0.25))


def test_halves_are_widened_once(tmp_path):
    wide = {"w": RNG.standard_normal((64, 36), np.float32)}
    built, loaded = saved(emitted(lambda x, w: op.dense(x, w), wide), tmp_path, weights="float16")
    assert loaded.weights == "float16"
    np.testing.assert_array_equal(loaded(X)[0], built(X)[0])


@pytest.mark.skipif(GENERATION == "relay", reason="Relay's open sizes run on its virtual machine")
def test_open_sizes(tmp_path):
    shapes = {name: (array.shape, "float32") for name, array in CHAIN.items()}
    mod = emit(chain, {"x": ((tir.Var("n", "int64"), 36), "float32"), **shapes}, CHAIN)
    built, loaded = saved(mod, tmp_path)
    assert apart(built).stubs
    for rows in (1, 2, 7, 33):
        x = RNG.standard_normal((rows, 36), np.float32)
        np.testing.assert_array_equal(loaded(x)[0], built(x)[0])


def test_a_folder_of_any_name(tmp_path, monkeypatch):
    """The assembler reads the weights in the folder for temporary files."""
    odd = tmp_path / 'a {b} "c" \\ d'
    odd.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(odd))
    built, loaded = saved(emitted(lambda x, w: op.dense(x, w), {"w": W}), tmp_path)
    np.testing.assert_array_equal(loaded(X)[0], built(X)[0])


TWO = """
import sys, numpy as np, selfbyoc
one, other = map(selfbyoc.load, sys.argv[1:])
x = np.ones((5, 36), "float32")
print(float(one(x)[0].sum()) != float(other(x)[0].sum()))
again = selfbyoc.load(sys.argv[1])
print(float(one(x)[0].sum()) == float(again(x)[0].sum()))
"""


def test_two_files_of_one_model_with_other_weights(tmp_path):
    """Their kernels and stubs have the same names."""
    paths = [tmp_path / "one.so", tmp_path / "other.so"]
    for path, factor in zip(paths, (1, 2), strict=True):
        mod = emitted(chain, {**CHAIN, "v": np.float32(factor) * V})
        selfbyoc.build(mod).export_library(path)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", TWO, *map(str, paths)]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.stdout.split() == ["True", "True"], done.stderr


MAPPED = """
import sys, numpy as np, selfbyoc
library = selfbyoc.load(sys.argv[1])
library(np.ones((1, 4096), "float32"))
status = dict(line.split(":") for line in open("/proc/self/status") if ":" in line)
print(int(status["RssAnon"].split()[0]) >> 10)
"""


def test_memory_does_not_hold_them_twice(tmp_path):
    """64 MB of weights, of which nothing is copied."""
    weight = {"w": RNG.standard_normal((4096, 4096), np.float32)}
    mod = emitted(lambda x, w: op.dense(x, w), weight, np.ones((1, 4096), np.float32))
    path = tmp_path / "model.so"
    selfbyoc.build(mod).export_library(path)
    assert path.stat().st_size < 1.02 * weight["w"].nbytes + 1e6
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", MAPPED, str(path)], env=env, capture_output=True,
                          text=True)  # fmt: skip
    least = 100 if GENERATION == "relay" else 60  # MB: what a process has without any
    assert int(done.stdout) < least, done.stderr
