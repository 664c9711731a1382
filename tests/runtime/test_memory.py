"""The memory between kernels that a library keeps, told in bytes."""

import numpy as np

import selfbyoc
from selfbyoc import emit, op
from selfbyoc.tvm import GENERATION

SHAPES = {
    "x": ((5, 33), "float32"),
    "w": ((17, 33), "float32"),
    "v": ((19, 17), "float32"),
    "u": ((3, 19), "float32"),
}
RNG = np.random.default_rng(0)
WEIGHTS = {n: RNG.standard_normal(SHAPES[n][0]).astype("float32") for n in "wvu"}
BETWEEN = 4 * 5 * (17 + 19)  # two results of float32 lie between three kernels
OUTPUT = 4 * 5 * 3 if GENERATION == "relay" else 0  # the graph executor's own


def program(x, w, v, u):
    return op.dense(op.dense(op.dense(x, w), v), u)


def test_what_lies_between_kernels(tmp_path):
    library = selfbyoc.build(emit(program, SHAPES, WEIGHTS))
    assert library.report.counts == {"dense": 3}
    # A storage may serve again: the output's place that of the first result.
    assert BETWEEN <= library.memory <= BETWEEN + OUTPUT
    library.export_library(tmp_path / "model.so")
    assert selfbyoc.load(tmp_path / "model.so").memory == library.memory


def test_one_kernel_has_nothing_before_or_after():
    library = selfbyoc.build(emit(lambda x, w: op.dense(x, w), {n: SHAPES[n] for n in "xw"}))
    assert library.memory == (4 * 5 * 17 if GENERATION == "relay" else 0)
