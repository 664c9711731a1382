"""Attention whose heads are one batch, with masks of four axes between views; both generations."""

import numpy as np
import pytest
from symbolic_programs import UNKNOWN

import selfbyoc
from selfbyoc import op
from selfbyoc.ir.emit import emit
from selfbyoc.runtime.tolerance import first_wrong
from selfbyoc.tvm import GENERATION

SENTENCES, HEADS, ROWS, DEPTH = 2, 3, 9, 20
MASKS = {
    "of each sentence": (SENTENCES, 1, 1, ROWS),
    "of each sentence and row": (SENTENCES, 1, ROWS, ROWS),
    "of rows": (1, 1, ROWS, ROWS),
    "of two axes": (ROWS, ROWS),
    "of heads": (1, HEADS, ROWS, ROWS),
    "of all": (SENTENCES, HEADS, ROWS, ROWS),
}


def attention(rows=ROWS, *, apart=False, turned=False):
    """Of BART, or of Bloom (`apart`), whose softmax has four axes, too."""
    whole, batch = (SENTENCES, HEADS, rows, rows), (SENTENCES * HEADS, rows, rows)

    def program(q, k, v, mask):
        scores = op.multiply(op.batch_matmul(q, k, transpose_b=True), 0.25)
        between = op.add(op.reshape(scores, shape=whole), mask)
        if turned:
            between = op.transpose(between, axes=(1, 0, 2, 3))
        if apart:
            return op.batch_matmul(op.reshape(op.softmax(between), shape=batch), v)
        return op.batch_matmul(op.softmax(op.reshape(between, shape=batch)), v)

    return program


def arguments(mask, rows=ROWS):
    rng = np.random.default_rng(0)
    found = {n: rng.standard_normal((SENTENCES * HEADS, rows, DEPTH), "float32") for n in "qkv"}
    hidden = rng.random(mask) < 0.3
    hidden[..., 0] = False
    return found | {"mask": np.where(hidden, -np.inf, rng.standard_normal(mask)).astype("float32")}


def expected(q, k, v, mask, turned=False):
    q, k, v = (x.astype("float64") for x in (q, k, v))
    scores = (q @ k.swapaxes(1, 2) * 0.25).reshape(SENTENCES, HEADS, *q.shape[1:2], -1) + mask
    scores = scores.swapaxes(0, 1) if turned else scores
    scores = scores.reshape(SENTENCES * HEADS, *scores.shape[2:])
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True) @ v


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("mask", MASKS)
def test_one_kernel(mask, apart):
    given = arguments(MASKS[mask])
    library = selfbyoc.build(emit(attention(apart=apart), {n: x.shape for n, x in given.items()}))
    assert library.report.counts == {"attention": 1}
    (found,) = library(**given)
    assert first_wrong(found, expected(**given).astype("float32"), "float32", 4 * ROWS) is None


def test_a_view_in_another_order_stays():
    given = arguments(MASKS["of each sentence"])
    program = attention(turned=True)
    library = selfbyoc.build(emit(program, {n: x.shape for n, x in given.items()}))
    assert library.report.counts == {"batch_matmul": 2, "softmax": 1}
    (found,) = library(**given)
    wanted = expected(**given, turned=True).astype("float32")
    assert first_wrong(found, wanted, "float32", 4 * ROWS) is None


@pytest.mark.slow
@pytest.mark.skipif(GENERATION == "relay", reason="a shape of Relay's reshape has no open size")
def test_open_sizes():
    n = UNKNOWN
    shapes = {name: (SENTENCES * HEADS, n, DEPTH) for name in "qkv"}
    library = selfbyoc.build(emit(attention(n), shapes | {"mask": (SENTENCES, 1, n, n)}))
    assert library.report.counts == {"attention": 1}
    for rows in (1, 2, 17, 40):
        given = arguments((SENTENCES, 1, rows, rows), rows)
        (found,) = library(**given)
        assert first_wrong(found, expected(**given).astype("float32"), "float32", 4 * rows) is None
