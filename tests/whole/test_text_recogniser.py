"""A text recogniser in small: a backbone of convolutions, pooled to one row, a neck of layer norms
spelled out, attention and dense layers over its columns. And pools of odd shapes.
"""

import numpy as np
import pytest
from harness import cpus

import selfbyoc
from selfbyoc import op
from selfbyoc.ir.emit import emit
from selfbyoc.ir.generation import ir
from selfbyoc.runtime.numpy_ops import evaluate

CHANNELS, COLUMNS = 24, 10
TARGETS = cpus(None, "llvm -mcpu=haswell", "llvm -mcpu=x86-64")


def normalised(x, gamma, beta):
    """A layer norm as importers write it."""
    centred = op.subtract(x, op.mean(x, axis=(2,), keepdims=True))
    variance = op.mean(op.multiply(centred, centred), axis=(2,), keepdims=True)
    root = op.sqrt(op.add(variance, 1e-5))
    return op.add(op.multiply(op.divide(centred, root), gamma), beta)


def recogniser(x, w1, b1, w2, b2, gamma, beta, qkv, proj, bias):
    y = op.silu(op.bias_add(op.conv2d(x, w1, padding=1, strides=2), b1))
    y = op.relu(op.bias_add(op.conv2d(y, w2, padding=1), b2))
    y = op.mean(y, axis=(2,), keepdims=True)
    tokens = op.transpose(op.reshape(y, shape=(1, CHANNELS, COLUMNS)), axes=(0, 2, 1))
    row = normalised(tokens, gamma, beta)
    parts = op.split(op.dense(row, qkv), indices_or_sections=3, axis=2)
    q, k, v = parts[0], parts[1], parts[2]
    scores = op.softmax(op.multiply(op.batch_matmul(q, k, transpose_b=True), 0.2))
    tokens = op.add(tokens, op.dense(op.batch_matmul(scores, v), proj))
    again = normalised(tokens, beta, gamma)
    return op.bias_add(op.dense(again, proj), bias, axis=2)


SHAPES = {
    "x": (1, 3, 12, 2 * COLUMNS), "w1": (16, 3, 3, 3), "b1": (16,), "w2": (CHANNELS, 16, 3, 3),
    "b2": (CHANNELS,), "gamma": (CHANNELS,), "beta": (CHANNELS,), "qkv": (3 * CHANNELS, CHANNELS),
    "proj": (CHANNELS, CHANNELS), "bias": (CHANNELS,),
}  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
def test_a_recogniser(target):
    rng = np.random.default_rng(8)
    args = {n: (0.4 * rng.standard_normal(s)).astype("float32") for n, s in SHAPES.items()}
    (wanted,) = evaluate(ir.read(emit(recogniser, SHAPES)["main"]), list(args.values()))
    x = args.pop("x")
    library = selfbyoc.build(emit(recogniser, SHAPES, args), target)
    counts = library.report.counts
    assert sum(counts.get(name, 0) for name in ("layer_norm", "layer_norm_dense")) == 2
    assert counts.get("attention", 0) == 1
    assert not [r for r in library.report.matched if r.cause == "fallback"]
    np.testing.assert_allclose(library(x)[0], wanted, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "shape", [(1, 200, 1, 48), (2, 32, 1, 40), (1, 7, 3, 1), (3, 1, 1, 1), (1, 33, 5, 7)]
)
def test_the_pool_of_odd_images(shape, target):
    mod = emit(lambda x: op.global_avg_pool2d(x), {"x": shape})
    x = np.random.default_rng(1).standard_normal(shape).astype("float32")
    library = selfbyoc.build(mod, target)
    assert library.report.counts == {"global_avg_pool2d": 1}
    assert not [r for r in library.report.matched if r.cause == "fallback"]
    wanted = x.astype("float64").mean((2, 3), keepdims=True)
    np.testing.assert_allclose(library(x)[0], wanted, rtol=1e-5, atol=1e-5)
