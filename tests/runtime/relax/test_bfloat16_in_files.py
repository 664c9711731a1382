"""Weights of bfloat16, a dtype that NumPy lacks, in a file's own pages. They stay what they are for
a CPU that has no products of them.
"""

import ml_dtypes
import numpy as np
import pytest

import selfbyoc
from selfbyoc import op
from selfbyoc.runtime.exporting import files
from selfbyoc.runtime.tolerance import first_wrong

X = np.random.default_rng(1).standard_normal((3, 96)).astype("float32")


def floats(w):
    return op.cast(w, dtype="float32")


def weight(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(ml_dtypes.bfloat16)


def saved(program, given, tmp_path, target=None):
    """In a file: the library, and its weights."""
    built = selfbyoc.build(selfbyoc.emit(program, {"x": X.shape}, given), target)
    built.export_library(tmp_path / "model.so")
    table = files.apart(built.native, built._lowered)[1]
    return selfbyoc.load(tmp_path / "model.so"), table.weights


def two(x, w, v):
    return op.dense(op.relu(op.dense(x, floats(w))), floats(v))


@pytest.mark.parametrize("target", ["llvm -mcpu=haswell", "llvm -mcpu=x86-64-v2"])
def test_kernels_read_them_in_the_file(target, tmp_path):
    w, v = weight(300, 96), weight(190, 300, seed=2)
    loaded, held = saved(two, {"w": w, "v": v}, tmp_path, target)
    assert {each.dtype for each in held} == {(4, 16, 1)}  # DLPack's bfloat16
    content = (tmp_path / "model.so").read_bytes()
    assert all(content.count(each.values.tobytes()) == 1 for each in held)
    hidden = np.maximum(X.astype("float64") @ w.astype("float64").T, 0)
    assert first_wrong(loaded(X)[0], hidden @ v.astype("float64").T, "float32", 396) is None
