"""Attention with masks: right whatever these hide, and no key is read that no query sees."""

import numpy as np
import pytest

import selfbyoc
from selfbyoc import op
from selfbyoc.ir.emit import emit
from selfbyoc.runtime.tolerance import first_wrong
from selfbyoc.tvm import GENERATION, tir

HEADS, DEPTH, COLUMNS = 2, 24, 21
LEAST = float(np.finfo("float32").min)
HIDING = (-np.inf, LEAST, -1e30)


def program(masks=1):
    def attention(q, k, v, *given):
        scores = op.batch_matmul(q, k, transpose_b=True)
        for mask in given:
            scores = op.add(scores, mask)
        return op.batch_matmul(op.softmax(scores), v)

    def one(q, k, v, mask):
        return attention(q, k, v, mask)

    return one if masks == 1 else lambda q, k, v, mask, bias: attention(q, k, v, mask, bias)


def arrays(rows, keys, *masks, heads=HEADS):
    rng = np.random.default_rng(rows * 1000 + keys)
    shapes = ((heads, rows, DEPTH), (heads, keys, DEPTH), (heads, keys, COLUMNS))
    found = [rng.standard_normal(shape, "float32") for shape in shapes]
    return dict(zip(("q", "k", "v", "mask", "bias"), [*found, *masks], strict=False))


def expected(q, k, v, *masks):
    """In NumPy, of float64; a row of which all is hidden by less than -inf is made of all keys."""
    scores = q.astype("float64") @ k.astype("float64").swapaxes(-1, -2)
    for mask in masks:
        scores = scores + mask
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True) @ v.astype("float64")


def check(given, target=None):
    shapes = {name: array.shape for name, array in given.items()}
    count = len(given) - 3
    library = selfbyoc.build(emit(program(count), shapes), target, cache=False)
    assert library.report.counts == {"attention": 1}
    (found,) = library(**given)
    wanted = expected(*given.values())
    assert first_wrong(found, wanted, "float32", given["k"].shape[1]) is None


def causal(rows, keys, hidden=-np.inf, window=None):
    """The last query sees all keys, or those of a window; the first one sees at least one."""
    query, key = np.arange(rows)[:, None], np.arange(keys)
    last = query + max(keys - rows, 0)
    sees = (key <= last) & (key > last - (window or keys + rows))
    return np.where(sees, 0, hidden).astype("float32")[None]


def padding(keys, seen, hidden=-np.inf):
    return np.where(np.arange(keys) < seen, 0, hidden).astype("float32")[None, None]


SIZES = [(37, 50), (64, 64), (5, 130), (100, 33), (17, 16), (48, 15)]


@pytest.mark.parametrize("hidden", HIDING)
@pytest.mark.parametrize("size", SIZES)
def test_causal(size, hidden):
    check(arrays(*size, causal(*size, hidden)))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("target", [None, "llvm -mcpu=haswell", "llvm -mcpu=nehalem"])
def test_a_window(size, target):
    check(arrays(*size, causal(*size, LEAST, window=7)), target)


@pytest.mark.parametrize("seen", [1, 3, 40, 99, 100])
def test_padding(seen):
    check(arrays(33, 100, padding(100, seen)))


@pytest.mark.parametrize("hidden", [LEAST, -1e32])
def test_rows_that_see_nothing_are_made_of_all_keys(hidden):
    mask = causal(40, 70, hidden)
    mask[:, ::3] = hidden
    check(arrays(40, 70, mask))
    check(arrays(40, 70, padding(70, 0, hidden)))


def test_less_is_added_to_some_hidden_keys():
    """Of a row that is hidden altogether, the keys that are hidden once."""
    mask = padding(60, 0, -1e32) + np.where(np.arange(60) % 2, 0, -1e33).astype("float32")
    check(arrays(20, 60, mask))


def test_no_number():
    """A mask that is NaN hides nothing: neither does ours."""
    mask = padding(64, 20)
    mask[..., 50] = np.nan
    given = arrays(20, 64, mask)
    library = selfbyoc.build(emit(program(), {n: a.shape for n, a in given.items()}), cache=False)
    assert np.isnan(library(**given)[0]).all()


@pytest.mark.parametrize("of_heads", [False, True])
def test_a_mask_and_what_is_known_of_positions(of_heads):
    bias = np.random.default_rng(2).standard_normal((HEADS, 45, 61)).astype("float32")
    mask = np.broadcast_to(causal(45, 61), (HEADS, 45, 61)) if of_heads else causal(45, 61)
    check(arrays(45, 61, np.ascontiguousarray(mask), bias))
    check(arrays(45, 61, bias, padding(61, 30, LEAST)))


@pytest.mark.parametrize("masks", ["rows", "padding", "both"])
def test_keys_that_no_query_sees_are_not_read(masks):
    keys, seen, rows = 300, 60, 50
    rest = padding(keys, seen)
    whole = np.ascontiguousarray(np.broadcast_to(rest, (1, rows, keys)))
    given = {"rows": (whole,), "padding": (rest,), "both": (whole, rest)}[masks]
    found = arrays(rows, keys, *given)
    wanted = expected(*found.values())
    found["k"][:, 200:], found["v"][:, 200:] = np.nan, np.nan  # tiles end far before
    shapes = {name: array.shape for name, array in found.items()}
    library = selfbyoc.build(emit(program(len(given)), shapes), cache=False)
    assert first_wrong(library(**found)[0], wanted, "float32", seen) is None


def test_each_block_of_queries_by_itself():
    """Of 96 queries the first 48 see no more than 48 keys."""
    found = arrays(96, 96, causal(96, 96), heads=1)
    wanted = expected(*found.values())
    found["v"][:, 94] = np.nan
    shapes = {name: array.shape for name, array in found.items()}
    (result,) = selfbyoc.build(emit(program(), shapes), cache=False)(**found)
    assert first_wrong(result[:, :16], wanted[:, :16], "float32", 96) is None
    assert np.isnan(result[:, 94:]).all()


@pytest.mark.parametrize(
    ("rows", "times", "keys", "is_open"),
    [
        (2, 2, 19, False), (1, 3, 19, False), (9, 5, 40, False), (30, 1, 40, False),
        (40, 3, 90, False), (2, 3, 70, True), (9, 5, 40, True),
    ],
)  # fmt: skip
def test_a_mask_for_groups_of_queries(rows, times, keys, is_open):
    """Few queries, blocks of them, blocks of keys: each repeats the mask by itself."""

    def groups(q, k, v, mask):
        scores = op.batch_matmul(q, k, transpose_b=True)
        scores = op.add(scores, op.tile(mask, repeats=(1, times, 1)))
        return op.batch_matmul(op.softmax(scores), v)

    given = arrays(rows * times, keys, causal(rows, keys, LEAST))
    shapes = {name: array.shape for name, array in given.items()}
    axes = {"k": 1, "v": 1, "mask": 2} if is_open else {}
    extent = tir.Var("m", "int64") if GENERATION == "relax" else tir.Any()
    opened = {
        name: tuple(extent if n == axes.get(name) else e for n, e in enumerate(shape))
        for name, shape in shapes.items()
    }
    mod = emit(groups, opened)
    if is_open and GENERATION == "relay":
        mod = selfbyoc.name_sizes(mod, {name: {axis: "m"} for name, axis in axes.items()})
    library = selfbyoc.build(mod, cache=False)
    assert library.report.counts == {"attention": 1}
    assert "tile" not in library.report.left
    q, k, v, mask = given.values()
    wanted = expected(q, k, v, np.tile(mask, (1, times, 1)))
    assert first_wrong(library(**given)[0], wanted, "float32", keys) is None


def test_a_mask_that_is_added_twice():
    def twice(q, k, v, mask):
        scores = op.add(op.batch_matmul(q, k, transpose_b=True), mask)
        return op.batch_matmul(op.softmax(op.add(scores, mask)), v)

    given = arrays(33, 40, causal(33, 40, LEAST))
    library = selfbyoc.build(emit(twice, {n: a.shape for n, a in given.items()}), cache=False)
    assert library.report.counts == {"attention": 1}
    q, k, v, mask = given.values()
    wanted = expected(q, k, v, 2 * mask.astype("float64"))
    assert first_wrong(library(**given)[0], wanted, "float32", 40) is None


def test_open_sizes():
    rows, keys = (tir.Var(n, "int64") if GENERATION == "relax" else tir.Any() for n in "nm")
    shapes = {
        "q": (HEADS, rows, DEPTH), "k": (HEADS, keys, DEPTH), "v": (HEADS, keys, COLUMNS),
        "mask": (1, rows, keys),
    }  # fmt: skip
    mod = emit(program(), shapes)
    if GENERATION == "relay":
        places = {"q": {1: "n"}, "k": {1: "m"}, "v": {1: "m"}, "mask": {1: "n", 2: "m"}}
        mod = selfbyoc.name_sizes(mod, places)
    library = selfbyoc.build(mod)
    assert library.report.counts == {"attention": 1}
    for size in (*SIZES, (1, 9), (3, 3), (2, 64), (130, 256)):
        given = arrays(*size, causal(*size, LEAST))
        (found,) = library(**given)
        wanted = expected(*given.values())
        assert first_wrong(found, wanted, "float32", size[1]) is None, size
