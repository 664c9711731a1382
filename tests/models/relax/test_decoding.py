"""A decoder with caches that it writes where they lie, against NumPy."""

import itertools
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from tvm import relax

import selfbyoc
from selfbyoc.errors import InputError
from selfbyoc.runtime.tolerance import first_wrong
from selfbyoc.tvm import tir

VOCABULARY, WIDTH, HEADS, SHARED, DEPTH, BOUND = 50, 32, 4, 2, 8, 40


def weights(seed=0):
    rng = np.random.default_rng(seed)
    shapes = {
        "table": (VOCABULARY, WIDTH), "q": (WIDTH, HEADS * DEPTH), "k": (WIDTH, SHARED * DEPTH),
        "v": (WIDTH, SHARED * DEPTH), "out": (HEADS * DEPTH, VOCABULARY),
    }  # fmt: skip
    return {n: rng.standard_normal(s).astype("float32") / s[0] ** 0.5 for n, s in shapes.items()}


def decoder(
    own, batch=1, viewed=False, results=lambda builder, logits, present, past: [logits, *present]
):
    """One layer: ids, keys, values -> logits, keys, values, or other results."""
    n, p = tir.Var("n", "int64"), tir.Var("p", "int64")
    cache = relax.TensorType((batch, SHARED, p, DEPTH), "float32")
    ids = relax.Var("ids", relax.TensorType((batch, n), "int64"))
    past = [relax.Var(name, cache) for name in ("keys", "values")]
    builder = relax.BlockBuilder()
    with builder.function("main", [ids, *past]):
        with builder.dataflow():
            found = step(builder, own, ids, past, (batch, n, p), viewed)
            result = builder.emit_output(relax.Tuple(results(builder, *found, past)))
        builder.emit_func_output(result)
    mod = builder.finalize()
    mod["main"] = mod["main"].with_attr("tir_var_upper_bound", {"n": 16, "p": BOUND})
    return mod


def step(builder, own, ids, past, sizes, viewed):
    """As transformers writes it: heads that are repeated, a causal mask of both sizes; or as its
    program is exported, by products of three axes between views (`viewed`).
    """
    R, E, (batch, n, p) = relax.op, builder.emit, sizes
    constant = {name: relax.const(array) for name, array in own.items()}
    x = E(R.take(constant["table"], E(R.reshape(E(R.astype(ids, "int32")), (batch * n,))), 0))

    def heads(name, count):
        split = E(R.reshape(E(R.matmul(x, constant[name])), (batch, n, count, DEPTH)))
        return E(R.permute_dims(split, [0, 2, 1, 3]))

    def repeated(value):
        times = HEADS // SHARED
        spread = E(R.broadcast_to(E(R.expand_dims(value, 2)), (batch, SHARED, times, p + n, DEPTH)))
        return E(R.reshape(spread, (batch, HEADS, p + n, DEPTH))) if times > 1 else value

    def product(x, y):
        if not viewed:
            return E(R.matmul(x, y))
        both = [E(R.reshape(each, (batch * HEADS, *each.ty.shape.values[2:]))) for each in (x, y)]
        found = E(R.matmul(*both))
        return E(R.reshape(found, (batch, HEADS, *found.ty.shape.values[1:])))

    present = [
        E(R.concat([old, heads(name, SHARED)], 2)) for old, name in zip(past, "kv", strict=True)
    ]
    keys, values = map(repeated, present)
    scores = product(heads("q", HEADS), E(R.permute_dims(keys, [0, 1, 3, 2])))
    row = E(R.reshape(E(R.arange(p, p + n, 1, "int64")), (1, 1, n, 1)))
    column = E(R.reshape(E(R.arange(0, p + n, 1, "int64")), (1, 1, 1, p + n)))
    zero, never = relax.const(0.0, "float32"), relax.const(float("-inf"), "float32")
    mask = E(R.where(E(R.less_equal(column, row)), zero, never))
    soft = E(R.nn.softmax(E(R.add(scores, mask))))
    mixed = E(R.permute_dims(product(soft, values), [0, 2, 1, 3]))
    logits = E(R.matmul(E(R.reshape(mixed, (batch, n, HEADS * DEPTH))), constant["out"]))
    return logits, present


def expected(own, ids):
    own = {name: array.astype("float64") for name, array in own.items()}
    x = own["table"][np.asarray(ids)]
    q, k, v = (
        (x @ own[name]).reshape(len(x), -1, DEPTH).transpose(1, 0, 2) for name in ("q", "k", "v")
    )
    k, v = (np.repeat(each, HEADS // SHARED, 0) for each in (k, v))
    scores = q @ k.swapaxes(1, 2) + np.where(np.tri(len(x)), 0, -np.inf)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    mixed = (powers / powers.sum(-1, keepdims=True)) @ v
    return mixed.transpose(1, 0, 2).reshape(len(x), -1) @ own["out"]


IDS = [int(n) for n in np.random.default_rng(5).integers(0, VOCABULARY, 37)]


@pytest.fixture(scope="module")
def built():
    own = weights()
    library = selfbyoc.build(selfbyoc.decoding(decoder(own), bound=BOUND))
    return SimpleNamespace(library=library, weights=own, logits=expected(own, IDS))


@pytest.mark.parametrize(
    "pieces",
    [[37], [5, 1, 1, 7, 16, 7], [1] * 37, [16, 16, 5], [36, 1]],
    ids=["one", "some", "tokens", "whole", "last"],
)
def test_in_any_pieces(built, pieces):
    assert built.library.report.counts["attention_of_heads"] == 1
    own = selfbyoc.Decoder(built.library)
    ends = list(itertools.accumulate(pieces))
    for end, count in zip(ends, pieces, strict=True):
        found = own.feed(IDS[end - count : end])
        assert first_wrong(found, built.logits[end - 1], "float32", WIDTH) is None
    assert own.cache.length == 37


@pytest.mark.parametrize(("shared", "copies"), [(1, 2), (2, 2), (HEADS, 0)])
def test_heads_of_an_exported_program_are_read_as_they_lie(shared, copies, monkeypatch):
    """No cache is copied, whether queries share their keys or not; those that do are, and what is
    computed of them.
    """
    monkeypatch.setattr(sys.modules[__name__], "SHARED", shared)
    own = weights()
    mod = selfbyoc.decoding(decoder(own, viewed=True), bound=BOUND)
    library = selfbyoc.build(mod)
    assert library.report.counts["attention_of_heads"] == 1
    assert library.report.left.get("transpose", 0) == copies
    fed = selfbyoc.Decoder(library)
    wanted = expected(own, IDS)
    for start, end in itertools.pairwise([0, 9, 10, 11, 27, 37]):
        assert first_wrong(fed.feed(IDS[start:end]), wanted[end - 1], "float32", WIDTH) is None


def test_caches_are_written_where_they_lie(built):
    own = selfbyoc.Decoder(built.library)
    views = [np.from_dlpack(tensor) for tensor in own.cache.tensors]
    assert [view.shape for view in views] == [(1, BOUND, SHARED, DEPTH)] * 2
    own.feed(IDS[:5])
    before = [view.copy() for view in views]
    assert all(view[0, :5].any(-1).all() and not view[0, 5:].any() for view in views)
    own.feed(IDS[5:6])
    assert all((view[0, :5] == old[0, :5]).all() for view, old in zip(views, before, strict=True))
    assert all(view[0, 5].any() and not view[0, 6:].any() for view in views)


def test_logits_are_the_callers(built):
    """They last while others are computed, and without the decoder; what is written there is read
    by nobody else.
    """
    own = selfbyoc.Decoder(built.library)
    kept = [own.feed([token]) for token in IDS[:9]]
    kept[3][:] = 7
    kept.append(own.feed(IDS[9:10]))
    del own
    wanted = [*built.logits[:3], np.full_like(kept[3], 7), *built.logits[4:10]]
    for found, logits in zip(kept, wanted, strict=True):
        assert first_wrong(found, logits, "float32", WIDTH) is None


def test_tokens(built):
    own = selfbyoc.Decoder(built.library)
    found = list(own.tokens(IDS[:9], 6))
    told = list(IDS[:9])
    for token in found:
        assert token == int(np.argmax(expected(built.weights, told)[-1]))
        told.append(token)
    own.cache.cut(9)
    assert len(list(own.tokens(IDS[:1], 1000))) == BOUND - 10 + 1
    own.cache = own.new_cache()
    assert list(own.tokens(IDS[:9], 3, choose=lambda logits: 7)) == [7, 7, 7]


def test_two_conversations(built):
    own = selfbyoc.Decoder(built.library)
    other = own.new_cache()
    own.feed(IDS[:8])
    own.feed([3, 4], other)
    found = own.feed(IDS[8:12])
    assert first_wrong(found, built.logits[11], "float32", WIDTH) is None
    found = own.feed([5], other)
    assert first_wrong(found, expected(built.weights, [3, 4, 5])[-1], "float32", WIDTH) is None


def test_a_file(built, tmp_path):
    built.library.export_library(tmp_path / "decoder.so")
    own = selfbyoc.Decoder(selfbyoc.load(tmp_path / "decoder.so"))
    assert (own.bound, own.piece) == (BOUND, 16)
    found = own.feed(IDS)
    assert first_wrong(found, built.logits[-1], "float32", WIDTH) is None


@pytest.mark.parametrize(
    ("ids", "told"),
    [
        ([], "one or more token ids, found float64"),
        ([[1, 2], [3, 4]], r"found int64 of \(2, 2\)"),
        ([0.5], "found float64"),
        ([VOCABULARY], "numbers from 0 to 49, found 50"),
        ([3, -1], "numbers from 0 to 49, found -1"),
        ([1] * (BOUND - 3), "at most 36 tokens, as the cache has 4 of 40, found 37"),
    ],
)
def test_wrong_tokens(built, ids, told):
    own = selfbyoc.Decoder(built.library)
    own.feed(IDS[:4])
    with pytest.raises(InputError, match=told):
        own.feed(ids)
    assert own.cache.length == 4
    found = own.feed(IDS[4:6])
    assert first_wrong(found, built.logits[5], "float32", WIDTH) is None


def test_the_cache_of_another_model(built):
    own = selfbyoc.Decoder(built.library)
    other = selfbyoc.build(selfbyoc.decoding(decoder(weights()), bound=BOUND - 1))
    cache = selfbyoc.Decoder(other).new_cache()
    found = r"cache: expected 2 of .* 40, .* found 2 of .* 39, .*model"
    with pytest.raises(InputError, match=found):
        own.feed([1], cache)
    with pytest.raises(InputError, match="length: expected 0 to 0, found 3"):
        own.cache.cut(3)


def read_besides(builder, logits, present, past):
    return [builder.emit(relax.op.add(logits, relax.op.max(past[0]))), *present]


def of_one_cache(builder, logits, present, past):
    twice = builder.emit(relax.op.concat([past[0], builder.emit(relax.op.exp(past[0]))], 2))
    return [logits, present[0], twice]


def joined_flat(builder, logits, present, past):
    flat = [builder.emit(relax.op.reshape(x, (-1,))) for x in present]
    return [logits, builder.emit(relax.op.concat(flat, None))]


OTHERS = {
    read_besides: r"ops that read \['keys'\] besides",
    of_one_cache: r"one result for each cache, found several of \['keys'\]",
    joined_flat: "no decoder: expected logits",
    lambda builder, logits, present, past: present: "no decoder: expected logits",
}


@pytest.mark.parametrize("results", OTHERS)
def test_caches_in_other_roles_are_refused(results):
    with pytest.raises(InputError, match=OTHERS[results]):
        selfbyoc.decoding(decoder(weights(), results=results), bound=BOUND)


def test_what_is_no_decoder():
    with pytest.raises(InputError, match="caches of a batch of 1 are kept"):
        selfbyoc.decoding(decoder(weights(), batch=3))
    one = relax.Var("x", relax.TensorType((1, 4), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [one]):
        builder.emit_func_output(builder.emit(relax.op.exp(one)))
    with pytest.raises(InputError, match="no decoder"):
        selfbyoc.decoding(builder.get())
    with pytest.raises(InputError, match="bound: expected a number above 0, found 0"):
        selfbyoc.decoding(builder.get(), bound=0)
    with pytest.raises(InputError, match=r"expected that of a decoder .* found inputs \['x'\]"):
        selfbyoc.Decoder(selfbyoc.build(builder.get()))
