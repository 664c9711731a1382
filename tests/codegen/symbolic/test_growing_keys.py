"""Attention of queries over keys of an open size of their own, as a decoder's cache has them."""

import re

import numpy as np
import pytest

import selfbyoc
from selfbyoc.analysis.kernels import kernels
from selfbyoc.codegen.symbolic.kernel import _learnt
from selfbyoc.errors import FallbackWarning, InputError
from selfbyoc.ir.emit import emit
from selfbyoc.ir.generation import writer
from selfbyoc.language.pattern import op
from selfbyoc.runtime.tolerance import first_wrong
from selfbyoc.schedules.kernels.attention import split_plan
from selfbyoc.tir.lowering import finished
from selfbyoc.tvm import GENERATION, tir

pytestmark = pytest.mark.slow

RELAX_ONLY = pytest.mark.skipif(GENERATION == "relay", reason="its batch_matmul has three axes")
KEYS = (1, 2, 7, 8, 9, 63, 64, 65, 127, 128, 129, 200, 513)
ROWS = (1, 2, 3, 8, 15, 16, 17, 33, 64, 130)
HEADS, DEPTH, COLUMNS = 3, 20, 24
OF_HEADS, SHARED = "a mask of each head", "a mask"
IN_ROWS, CACHED = "in rows", "as a cache lies"


def program(layout, mask):
    """Attention of these arguments."""

    def alone(q, k, v):
        return weighted(scores(q, k), v)

    def masked(q, k, v, mask):
        return weighted(op.add(scores(q, k), mask), v)

    def scores(q, k):
        return op.multiply(op.batch_matmul(q, as_rows(k), transpose_b=True), 0.3)

    def weighted(found, v):
        return op.batch_matmul(op.softmax(found), as_rows(v))

    def as_rows(x):
        return x if layout == IN_ROWS else op.transpose(x, axes=(0, 2, 1, 3))

    return masked if mask else alone


def shapes(rows, keys, layout=IN_ROWS, mask=None, depth=DEPTH, columns=COLUMNS):
    """Of the arguments; Relay's products have three axes."""
    laid = (HEADS, keys) if layout == IN_ROWS else (keys, HEADS)
    found = {"q": (1, HEADS, rows, depth), "k": (1, *laid, depth), "v": (1, *laid, columns)}
    if mask:
        found["mask"] = (1, HEADS if mask == OF_HEADS else 1, rows, keys)
    return {n: s[1:] for n, s in found.items()} if GENERATION == "relay" else found


def library(rows, layout=IN_ROWS, mask=None, target=None, **extents):
    """Built for `rows` queries (None: of another open size); one kernel, learnt."""
    rows_of = rows or (tir.Var("rows", "int64") if GENERATION == "relax" else tir.Any())
    keys = tir.Var("keys", "int64") if GENERATION == "relax" else tir.Any()
    mod = emit(program(layout, mask), shapes(rows_of, keys, layout, mask, **extents))
    if GENERATION == "relay":
        names = {rows_of: "rows", keys: "keys"} if rows is None else {keys: "keys"}
        places = shapes(rows_of, keys, layout, mask, **extents)
        mod = selfbyoc.name_sizes(mod, {
            arg: {axis: name for axis, e in enumerate(shape) for of, name in names.items()
                  if e is of}
            for arg, shape in places.items()
            if any(e is of for e in shape for of in names)
        })  # fmt: skip
    found = selfbyoc.build(mod, target)
    composite = "attention" if layout == IN_ROWS else "attention_of_heads"
    assert found.report.counts == {composite: 1}
    return found


def arguments(rows, keys, layout=IN_ROWS, mask=None, **extents):
    rng = np.random.default_rng(keys * 1000 + rows)
    found = {
        name: rng.standard_normal(shape, dtype="float32")
        for name, shape in shapes(rows, keys, layout, mask, **extents).items()
    }
    if mask:
        hidden = rng.random(found["mask"].shape) < 0.3
        hidden[..., rng.integers(keys)] = False
        found["mask"] = np.where(hidden, -np.inf, found["mask"])
    return found


def expected(q, k, v, mask=0.0, *, layout=IN_ROWS):
    """In NumPy, of float64."""
    if layout == CACHED:
        k, v = (x.transpose(0, 2, 1, 3) for x in (k, v))
    scores = np.matmul(q.astype("float64"), np.swapaxes(k, -1, -2)) * 0.3 + mask
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return np.matmul(powers / powers.sum(-1, keepdims=True), v.astype("float64"))


def check(found, rows, keys, layout=IN_ROWS, mask=None, **extents):
    given = arguments(rows, keys, layout, mask, **extents)
    (result,) = found(**given)
    wanted = expected(**given, layout=layout).astype("float32")
    assert first_wrong(result, wanted, "float32", keys) is None, (rows, keys)


@pytest.mark.parametrize(
    ("rows", "mask"),
    [(1, None), (1, OF_HEADS), (2, SHARED), (3, None), (7, SHARED), (16, OF_HEADS), (17, None)],
)  # fmt: skip
def test_some_queries(rows, mask):
    found = library(rows, mask=mask)
    for keys in KEYS:
        check(found, rows, keys, mask=mask)


@pytest.mark.parametrize("target", [None, "llvm -mcpu=haswell", "llvm"])
@pytest.mark.parametrize("mask", [None, SHARED, OF_HEADS])
def test_any_number_of_queries(mask, target):
    found = library(None, mask=mask, target=target)
    for keys in KEYS:
        for rows in ROWS:
            check(found, rows, keys, mask=mask)


@pytest.mark.parametrize("rows", [1, 5, 13])
@pytest.mark.parametrize("target", ["llvm -mcpu=haswell", "llvm"])
def test_other_targets(rows, target):
    found = library(rows, target=target, mask=SHARED)
    for keys in KEYS:
        check(found, rows, keys, mask=SHARED)


@RELAX_ONLY
@pytest.mark.parametrize("rows", [1, 7, None])
def test_keys_and_values_as_a_cache_has_them(rows):
    found = library(rows, CACHED, SHARED)
    for keys in KEYS:
        for queries in ROWS if rows is None else (rows,):
            check(found, queries, keys, CACHED, SHARED)


@RELAX_ONLY
@pytest.mark.parametrize("target", [None, "llvm -mcpu=haswell", "llvm"])
@pytest.mark.parametrize(
    ("heads", "shared", "depth"), [(12, 12, 64), (32, 8, 64), (32, 4, 64), (6, 1, 128)]
)
def test_heads_of_models(heads, shared, depth, target):
    """A kernel for any number of queries: a warning that there is none is an error here."""
    from tvm import relax

    n, m, times = tir.Var("n", "int64"), tir.Var("m", "int64"), heads // shared

    def body(q, k, v, mask):
        def repeated(x):
            x = relax.op.permute_dims(x, [0, 2, 1, 3])
            if times == 1:
                return x
            spread = relax.op.expand_dims(x, 2), (1, shared, times, m, depth)
            return relax.op.reshape(relax.op.broadcast_to(*spread), (1, heads, m, depth))

        turned = relax.op.permute_dims(repeated(k), [0, 1, 3, 2])
        scores = relax.op.multiply(relax.op.matmul(q, turned), relax.const(0.3, "float32"))
        return [relax.op.matmul(relax.op.nn.softmax(relax.op.add(scores, mask)), repeated(v))]

    of_keys = (1, m, shared, depth)
    args = {"q": (1, heads, n, depth), "k": of_keys, "v": of_keys, "mask": (1, 1, n, m)}
    kinds = {name: (shape, "float32") for name, shape in args.items()}
    mod = relax.transform.Normalize()(writer.emit_module(kinds, body))
    found = selfbyoc.build(mod, target)
    assert found.report.counts == {"attention_of_heads": 1}
    rng = np.random.default_rng(heads)
    for rows, keys in ((1, 1), (2, 2), (3, 5), (16, 70), (23, 24), (25, 41), (33, 33), (48, 130)):
        sizes = {n: rows, m: keys}
        given = {
            name: rng.standard_normal([sizes.get(e, e) for e in shape], dtype="float32")
            for name, shape in args.items()
        }
        seen = np.tri(rows, keys, keys - rows)[None, None]
        given["mask"] = np.where(seen, 0, -np.inf).astype("float32")
        (result,) = found(**given)
        given |= {name: np.repeat(given[name], times, 2) for name in "kv"}
        wanted = expected(**given, layout=CACHED).astype("float32")
        assert first_wrong(result, wanted, "float32", keys) is None, (rows, keys)


@pytest.mark.parametrize("extents", [
    {"depth": 7, "columns": 13}, {"depth": 1, "columns": 1}, {"depth": 64, "columns": 80},
], ids=str)  # fmt: skip
@pytest.mark.parametrize("rows", [1, 6])
def test_odd_extents(rows, extents):
    found = library(rows, **extents)
    for keys in (1, 64, 65, 200):
        check(found, rows, keys, **extents)


@pytest.mark.parametrize("rows", [1, 4])
def test_hidden_blocks(rows):
    """One that is hidden altogether adds nothing; a row of which all are is NaN, and no other."""
    found = library(rows, mask=SHARED)
    given = arguments(rows, 200, mask=SHARED)
    given["mask"][..., :] = 0
    given["mask"][..., :130] = -np.inf
    (result,) = found(**given)
    assert first_wrong(result, expected(**given).astype("float32"), "float32", 200) is None
    given["mask"][..., 0, :] = -np.inf
    (result,) = found(**given)
    assert np.isnan(result[..., 0, :]).all()
    assert np.isfinite(result[..., 1:, :]).all()


@RELAX_ONLY
@pytest.mark.parametrize("rows", [1, 4, None])
def test_a_guard_against_nan(rows):
    """PyTorch's: rows that are hidden altogether are zeros."""
    from tvm import relax

    keys = tir.Var("keys", "int64")
    queries = rows or tir.Var("rows", "int64")

    def body(q, k, v, mask):
        turned = relax.op.permute_dims(k, [0, 1, 3, 2])
        scores = relax.op.multiply(relax.op.matmul(q, turned), relax.const(0.3, "float32"))
        powers = relax.op.nn.softmax(relax.op.add(scores, mask))
        zero = relax.const(0.0, "float32")
        return [relax.op.matmul(relax.op.where(relax.op.isnan(powers), zero, powers), v)]

    args = {n: (s, "float32") for n, s in shapes(queries, keys, mask=SHARED).items()}
    mod = relax.transform.Normalize()(writer.emit_module(args, body))
    found = selfbyoc.build(mod)
    assert found.report.counts == {"attention": 1}
    for size in (1, 64, 200):
        given = arguments(rows or 5, size, mask=SHARED)
        given["mask"][..., 0, :] = -np.inf
        (result,) = found(**given)
        with np.errstate(invalid="ignore"):
            wanted = np.nan_to_num(expected(**given)).astype("float32")
        assert first_wrong(result, wanted, "float32", size) is None, size


@pytest.mark.parametrize(("rows", "asked"), [(1, False), (7, True), (16, True)])
def test_tiles_of_keys_ask_for_those_of_the_next_block(rows, asked):
    """Lanes of the depth read them from end to end, which the hardware follows."""
    keys = tir.Var("keys", "int64") if GENERATION == "relax" else tir.Any()
    mod = emit(program(IN_ROWS, None), shapes(rows, keys, depth=64, columns=64))
    if GENERATION == "relay":
        mod = selfbyoc.name_sizes(mod, {name: {1: "keys"} for name in "kv"})
    (kernel,) = kernels(selfbyoc.partition_for_tefuse(mod))
    _, scheduled = kernel.schedule(selfbyoc.host_target())
    text = finished(scheduled.mod["main"], selfbyoc.host_target()).script()
    of = [set(re.findall(rf"prefetch\(.*address_of\({name}\[", text)) for name in "kv"]
    assert [bool(found) for found in of] == [asked, asked]


def test_after_it():
    """What is elementwise is part of the kernel."""
    keys = tir.Var("keys", "int64") if GENERATION == "relax" else tir.Any()
    of = shapes(7, keys)
    residual = (*of["q"][:-1], COLUMNS)

    def body(q, k, v, r):
        return op.relu(op.add(program(IN_ROWS, None)(q, k, v), r))

    mod = emit(body, {**of, "r": residual})
    if GENERATION == "relay":
        axis = len(residual) - 2
        mod = selfbyoc.name_sizes(mod, {name: {axis: "keys"} for name in "kv"})
    found = selfbyoc.build(mod)
    assert found.report.counts == {"attention": 1}
    for size in (1, 64, 65, 200):
        given = arguments(7, size)
        added = np.random.default_rng(0).standard_normal(residual, dtype="float32")
        (result,) = found(**given, r=added)
        wanted = np.maximum(expected(**given) + added, 0).astype("float32")
        assert first_wrong(result, wanted, "float32", size) is None, size


def test_no_keys_and_no_queries():
    found = library(None)
    for rows, keys in ((0, 5), (0, 0)):
        zeros = (np.zeros(s, "float32") for s in shapes(rows, keys).values())
        (result,) = found(*zeros)
        assert result.shape[-2:] == (0, COLUMNS)
    for rows in (1, 5):
        given = {n: np.zeros(s, "float32") for n, s in shapes(rows, 0).items()}
        with pytest.raises(InputError, match="size keys: expected 1 or more"):
            found(**given)


@pytest.mark.parametrize(("least", "most"), [(None, 40), (None, 64), (100, None)])
@RELAX_ONLY
def test_within_a_range(least, most):
    """Of one block, say."""
    mod = emit(program(IN_ROWS, None), shapes(7, tir.Var("keys", "int64")))
    found = selfbyoc.build(mod, sizes={"keys": (least, most)})
    assert found.report.counts == {"attention": 1}
    for keys in (*KEYS, 39, 40, 100, 101):
        if (least or 1) <= keys <= (most or 513):
            check(found, 7, keys)


def test_blocks_as_long_as_few_sizes_are(monkeypatch):
    """Of 256 keys: sizes of one block are alike, and among larger ones, multiples of 64. What no
    kernel of these is right for has none, and says so.
    """
    monkeypatch.setattr(split_plan, "KEYS", (256,))
    _learnt.clear()
    with pytest.warns(FallbackWarning, match=r"no kernel of keys=512"):
        found = library(7)
    for keys in (130, 500, 512, 700, 2050):
        check(found, 7, keys)
    _learnt.clear()
