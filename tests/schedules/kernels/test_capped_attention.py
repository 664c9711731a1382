"""Attention of capped scores, cap * tanh(scores / cap): one kernel in every form and size."""

import numpy as np
import pytest

import selfbyoc
from selfbyoc import op
from selfbyoc.ir.emit import emit
from selfbyoc.runtime.tolerance import first_wrong
from selfbyoc.tvm import GENERATION, tir

RELAX_ONLY = pytest.mark.skipif(GENERATION == "relay", reason="its batch_matmul has three axes")
HEADS, DEPTH, COLUMNS, KEYS = 2, 24, 21, 51
SCALE, CAP = 0.5, 3.0
OF_HEADS = {"axes": (0, 2, 1, 3)}
FORMS = {
    "scores over": lambda s: op.multiply(op.tanh(op.divide(op.multiply(s, SCALE), CAP)), CAP),
    "scores times": lambda s: op.multiply(CAP, op.tanh(op.multiply(op.divide(s, 2.0), 1 / CAP))),
    "one scale": lambda s: op.multiply(op.tanh(op.multiply(s, SCALE / CAP)), CAP),
    "queries": lambda s: op.multiply(op.tanh(s), CAP),
}


def program(form="scores over", masks=0):
    def whole(q, k, v, *given):
        q = op.multiply(q, SCALE / CAP) if form == "queries" else q
        scores = FORMS[form](op.batch_matmul(q, k, transpose_b=True))
        for mask in given:
            scores = op.add(scores, mask)
        return op.batch_matmul(op.softmax(scores), v)

    named = {
        0: lambda q, k, v: whole(q, k, v),
        1: lambda q, k, v, mask: whole(q, k, v, mask),
        2: lambda q, k, v, bias, mask: whole(q, k, v, bias, mask),
    }
    return named[masks]


def shapes(rows, keys, masks=0):
    found = {"q": (HEADS, rows, DEPTH), "k": (HEADS, keys, DEPTH), "v": (HEADS, keys, COLUMNS)}
    return found | dict(zip(["mask", "bias"][:masks], [(1, rows, keys)] * 2, strict=False))


def arrays(rows, keys, masks=0):
    """Some keys are hidden; values of these are huge: a weight of 1e-38 would show."""
    rng = np.random.default_rng(rows * 1000 + keys)
    found = {n: rng.standard_normal(s, "float32") for n, s in shapes(rows, keys, masks).items()}
    if masks and keys > 1:
        found["mask"][..., keys // 2] = -np.inf
        found["v"][:, keys // 2] = 1e30
    return found


def expected(q, k, v, mask=0.0, bias=0.0, scale=SCALE, cap=CAP):
    """In NumPy, of float64."""
    scores = q.astype("float64") @ k.astype("float64").swapaxes(-1, -2) * scale
    scores = cap * np.tanh(scores / cap) + mask + bias
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True) @ v.astype("float64")


def built(asked, given, composite="attention"):
    library = selfbyoc.build(emit(asked, given), cache=False)
    assert library.report.counts == {composite: 1}
    return library


def check(library, given):
    (found,) = library(**given)
    wanted = expected(**given).astype("float32")
    assert first_wrong(found, wanted, "float32", DEPTH + given["k"].shape[1]) is None


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("rows", "masks"), [(37, 0), (3, 1), (17, 2)])
def test_every_form(form, rows, masks):
    check(built(program(form, masks), shapes(rows, KEYS, masks)), arrays(rows, KEYS, masks))


@pytest.mark.parametrize("size", [1e-20, 30.0, 1e15])
def test_scores_of_any_size(size):
    """Beyond the cap all of one sign weigh the same."""
    given = arrays(19, KEYS)
    given["q"] *= np.float32(size)
    check(built(program(), shapes(19, KEYS)), given)


@pytest.mark.parametrize("masks", [0, 1])
@pytest.mark.parametrize("rows", [1, 7, 35])
def test_open_keys(rows, masks):
    """As a decoder's cache has them: in blocks, which threads share."""
    keys = tir.Var("keys", "int64") if GENERATION == "relax" else tir.Any()
    mod = emit(program(masks=masks), shapes(rows, keys, masks))
    if GENERATION == "relay":
        names = {"k": {1: "keys"}, "v": {1: "keys"}} | ({"mask": {2: "keys"}} if masks else {})
        mod = selfbyoc.name_sizes(mod, names)
    library = selfbyoc.build(mod, cache=False)
    assert library.report.counts == {"attention": 1}
    for count in (1, 7, 64, 65, 200):
        check(library, arrays(rows, count, masks))


@RELAX_ONLY
def test_heads_as_dense_layers_leave_them():
    def whole(q, k, v, mask):
        q, k, v = (op.transpose(x, **OF_HEADS) for x in (q, k, v))
        turned = program(masks=1)(q, k, v, mask)
        return op.transpose(turned, **OF_HEADS)

    given = {n: a[None] for n, a in arrays(29, KEYS, 1).items()}
    laid = {n: a if n == "mask" else a.transpose(0, 2, 1, 3).copy() for n, a in given.items()}
    library = built(whole, {n: a.shape for n, a in laid.items()}, "attention_of_heads")
    (found,) = library(**laid)
    wanted = expected(**given).transpose(0, 2, 1, 3).astype("float32")
    assert first_wrong(found, wanted, "float32", DEPTH + KEYS) is None


@pytest.mark.parametrize("masks", [0, 1])
def test_queries_that_share_keys(masks):
    def shared(x, keys, columns):
        spread = op.reshape(x, shape=(1, HEADS, 1, keys, columns))
        spread = op.broadcast_to(spread, shape=(1, HEADS, 3, keys, columns))
        return op.reshape(spread, shape=(HEADS * 3, keys, columns))

    def whole(q, k, v, mask):
        k, v = shared(k, KEYS, DEPTH), shared(v, KEYS, COLUMNS)
        return program(masks=1)(q, k, v, mask)

    def without(q, k, v):
        return program()(q, shared(k, KEYS, DEPTH), shared(v, KEYS, COLUMNS))

    given = arrays(7, KEYS, masks)
    given["q"] = np.random.default_rng(0).standard_normal((HEADS * 3, 7, DEPTH), "float32")
    library = built(whole if masks else without, {n: a.shape for n, a in given.items()})
    (found,) = library(**given)
    repeated = {n: np.repeat(given[n], 3, 0) for n in "kv"}
    wanted = expected(**given | repeated).astype("float32")
    assert first_wrong(found, wanted, "float32", DEPTH + KEYS) is None


@pytest.mark.parametrize("where", ["slope", "cap"])
def test_a_cap_of_each_score_stays_outside(where):
    def whole(q, k, v, gate):
        scores = op.batch_matmul(q, k, transpose_b=True)
        slanted = op.multiply(scores, gate if where == "slope" else 1 / CAP)
        capped = op.multiply(op.tanh(slanted), gate if where == "cap" else CAP)
        return op.batch_matmul(op.softmax(capped), v)

    given = arrays(9, KEYS)
    gate = np.random.default_rng(1).random((1, 9, KEYS), "float32")
    types = {n: a.shape for n, a in {**given, "gate": gate}.items()}
    library = selfbyoc.build(emit(whole, types), cache=False)
    assert library.report.counts.get("attention", 0) == 0
    (found,) = library(**given, gate=gate)
    slope, cap = (gate, CAP) if where == "slope" else (1 / CAP, gate)
    wide = {n: a.astype("float64") for n, a in given.items()}
    scores = cap * np.tanh(wide["q"] @ wide["k"].swapaxes(-1, -2) * slope)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    wanted = (powers / powers.sum(-1, keepdims=True) @ wide["v"]).astype("float32")
    assert first_wrong(found, wanted, "float32", DEPTH + KEYS) is None
