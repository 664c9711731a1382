"""Attention that hides keys by a condition, as GPT-2, GPT-J and Bloom do; both generations."""

import numpy as np
import pytest

import selfbyoc
from selfbyoc import op
from selfbyoc.ir.emit import emit
from selfbyoc.runtime.tolerance import first_wrong

HEADS, ROWS, KEYS, DEPTH = 3, 9, 13, 20
LEAST = float(np.finfo("float32").min)


def attention(hidden, *, turned=False, scaled=False, masked=False):
    def program(q, k, v, seen, mask=None):
        scores = op.batch_matmul(q, k, transpose_b=True)
        sides = (hidden, scores) if turned else (scores, hidden)
        found = op.where(seen, *sides)
        found = op.divide(found, 4.0) if scaled else found
        return op.batch_matmul(op.softmax(op.add(found, mask) if masked else found), v)

    if masked:
        return program
    return lambda q, k, v, seen: program(q, k, v, seen)


def arguments(shape, *, masked, is_all_hidden=False):
    rng = np.random.default_rng(0)
    rows = {"q": ROWS, "k": KEYS, "v": KEYS}
    given = {n: rng.standard_normal((HEADS, m, DEPTH), "float32") for n, m in rows.items()}
    given["seen"] = rng.random(shape) < 0.6
    given["seen"][..., 0] = True
    if is_all_hidden:
        given["seen"][..., 2, :] = False
    return given | ({"mask": rng.standard_normal((1, 1, KEYS), "float32")} if masked else {})


def expected(q, k, v, seen, mask=0.0, *, hidden, turned, scaled):
    scores = q.astype("float64") @ k.swapaxes(1, 2)
    scores = np.where(seen != turned, scores, np.float64(hidden)) / (4 if scaled else 1) + mask
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return (powers / powers.sum(-1, keepdims=True) @ v).astype("float32")


def check(given, kernels, *, hidden, constant=False, **how):
    if how.get("turned"):
        given["seen"] = ~given["seen"]
    types = {n: (x.shape, str(x.dtype)) for n, x in given.items()}
    held = {"seen": given["seen"]} if constant else {}
    library = selfbyoc.build(emit(attention(hidden, **how), types, held))
    assert library.report.counts == kernels
    (found,) = library(**{n: x for n, x in given.items() if n not in held})
    told = {"turned": how.get("turned", False), "scaled": how.get("scaled", False)}
    wanted = expected(**given, hidden=hidden, **told)
    assert first_wrong(found, wanted, "float32", KEYS + DEPTH) is None


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("hidden", [LEAST, -np.inf])
def test_one_kernel(hidden, turned, scaled, masked):
    given = arguments((1, ROWS, KEYS), masked=masked)
    check(given, {"attention": 1}, hidden=hidden, turned=turned, scaled=scaled, masked=masked)


@pytest.mark.parametrize("shape", [(HEADS, ROWS, KEYS), (ROWS, KEYS), (1, 1, KEYS)])
@pytest.mark.parametrize("constant", [False, True])
def test_conditions(shape, constant):
    given = arguments(shape, masked=False)
    check(given, {"attention": 1}, hidden=LEAST, constant=constant)


def test_a_row_that_nobody_sees_is_the_mean():
    """All of its scores are the least float, whatever they were."""
    given = arguments((1, ROWS, KEYS), masked=False, is_all_hidden=True)
    check(given, {"attention": 1}, hidden=LEAST)


def test_a_number_that_a_score_may_change_stays_a_choice():
    given = arguments((1, ROWS, KEYS), masked=False)
    check(given, {"batch_matmul": 2, "softmax": 1}, hidden=-1e4)
