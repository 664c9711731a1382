"""Queries that share keys and values are rows of one product, on both generations."""

import numpy as np
import pytest

import selfbyoc
from selfbyoc import op
from selfbyoc.ir.emit import emit
from selfbyoc.runtime.tolerance import first_wrong
from selfbyoc.tvm import GENERATION

HEADS, TIMES, QUERIES, KEYS, DEPTH = 2, 3, 5, 19, 16


def repeated(x):
    """Each head three times, as transformers writes it."""
    spread = op.reshape(x, shape=(1, HEADS, 1, KEYS, DEPTH))
    spread = op.broadcast_to(spread, shape=(1, HEADS, TIMES, KEYS, DEPTH))
    return op.reshape(spread, shape=(HEADS * TIMES, KEYS, DEPTH))


def attention(q, k, v, mask):
    scores = op.multiply(op.batch_matmul(q, repeated(k), transpose_b=True), 0.25)
    return op.batch_matmul(op.softmax(op.add(scores, mask)), repeated(v))


def without_mask(q, k, v):
    scores = op.batch_matmul(op.multiply(q, 0.25), repeated(k), transpose_b=True)
    return op.batch_matmul(op.softmax(scores), repeated(v))


def twice_used(q, k, v):
    keys = repeated(k)
    return op.batch_matmul(op.softmax(op.batch_matmul(q, keys, transpose_b=True)), keys)


SHAPES = {"q": (HEADS * TIMES, QUERIES, DEPTH)} | dict.fromkeys("kv", (1, HEADS, KEYS, DEPTH))


def arrays_of(shapes):
    rng = np.random.default_rng(7)
    return {name: rng.standard_normal(s).astype("float32") for name, s in shapes.items()}


def expected(q, k, v, mask=0.0, scale=0.25):
    q, k, v = (array.astype("float64") for array in (q, k, v))
    k, v = (np.repeat(array[0], TIMES, 0) for array in (k, v))
    scores = q @ k.swapaxes(-1, -2) * scale + mask
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True) @ v


def built(program, shapes):
    library = selfbyoc.build(emit(program, shapes), cache=False)
    return library, library.report


@pytest.mark.parametrize(
    "mask",
    [(1, QUERIES, KEYS), (1, 1, KEYS), (QUERIES, KEYS), (1, QUERIES, 1)],
    ids=["rows", "one_row", "two_axes", "column"],
)
def test_one_kernel_of_groups(mask):
    arrays = arrays_of(SHAPES | {"mask": mask})
    library, report = built(attention, {name: a.shape for name, a in arrays.items()})
    assert report.counts == {"attention": 1}
    assert not {"broadcast_to", "tile", "softmax"} & set(report.left)  # the kernel repeats the mask
    (found,) = library(*arrays.values())
    assert first_wrong(found, expected(**arrays), "float32", KEYS) is None


def test_nothing_is_repeated():
    arrays = arrays_of(SHAPES)
    library, report = built(without_mask, SHAPES)
    assert report.counts == {"attention": 1}
    assert not {"broadcast_to", "softmax"} & set(report.left)
    (found,) = library(*arrays.values())
    assert first_wrong(found, expected(**arrays), "float32", KEYS) is None


def test_keys_that_are_values_too():
    arrays = arrays_of(SHAPES)
    library, report = built(twice_used, SHAPES)
    assert report.counts == {"attention": 1}
    (found,) = library(*arrays.values())
    told = {**arrays, "v": arrays["k"]}
    assert first_wrong(found, expected(**told, scale=1.0), "float32", KEYS) is None


@pytest.mark.parametrize("rows", [1, QUERIES])
def test_a_mask_for_each_head(rows):
    """In groups it has as many rows as queries; of one row a head it is right in other kernels."""
    shapes = SHAPES | {"mask": (HEADS * TIMES, rows, KEYS)}
    arrays = arrays_of(shapes)
    library, report = built(attention, shapes)
    if rows > 1:
        assert report.counts == {"attention": 1}
        assert "broadcast_to" not in report.left
    (found,) = library(*arrays.values())
    assert first_wrong(found, expected(**arrays), "float32", KEYS) is None


def roots_of_scale(q, k, v, number):
    """As ONNX writes Attention."""
    keys = op.multiply(op.transpose(repeated(k), axes=(0, 2, 1)), number)
    return op.batch_matmul(op.softmax(op.batch_matmul(op.multiply(q, number), keys)), repeated(v))


@pytest.mark.parametrize("axes", [(), (1,)], ids=["no axis", "one axis"])
def test_keys_that_are_scaled(axes):
    arrays, number = arrays_of(SHAPES), np.full(axes, 0.5, "float32")
    mod = emit(roots_of_scale, SHAPES | {"number": axes}, {"number": number})
    library = selfbyoc.build(mod, cache=False)
    assert library.report.counts == {"attention": 1}
    assert "broadcast_to" not in library.report.left
    (found,) = library(*arrays.values())
    assert first_wrong(found, expected(**arrays), "float32", KEYS) is None


def in_other_axes(q, k, v):
    """Scores with an axis of 1 more, whose softmax names its axis from the front."""
    whole = (1, HEADS * TIMES, QUERIES, KEYS)
    scores = op.batch_matmul(q, repeated(k), transpose_b=True)
    soft = op.softmax(op.reshape(scores, shape=whole), axis=3)
    return op.batch_matmul(op.reshape(soft, shape=whole[1:]), repeated(v))


def scaled_before(q, k, v, factor):
    """By a number with axes of its own, where keys have more axes than their product."""
    scaled = op.multiply(op.reshape(repeated(k), shape=(1, HEADS * TIMES, KEYS, DEPTH)), factor)
    keys = op.reshape(scaled, shape=(HEADS * TIMES, KEYS, DEPTH))
    return op.batch_matmul(op.softmax(op.batch_matmul(q, keys, transpose_b=True)), repeated(v))


def test_a_factor_with_axes():
    """It is no number to scale queries by; whatever becomes of it is right."""
    arrays, factor = arrays_of(SHAPES), np.full((1, 1, 1, 1), 0.5, "float32")
    mod = emit(scaled_before, SHAPES | {"factor": factor.shape}, {"factor": factor})
    (found,) = selfbyoc.build(mod, cache=False)(*arrays.values())
    assert first_wrong(found, expected(**arrays, scale=0.5), "float32", KEYS) is None


def test_an_axis_from_the_front():
    arrays = arrays_of(SHAPES)
    library, report = built(in_other_axes, SHAPES)
    assert report.counts == {"attention": 1}
    (found,) = library(*arrays.values())
    assert first_wrong(found, expected(**arrays, scale=1.0), "float32", KEYS) is None


def test_one_query():
    shapes = SHAPES | {"q": (HEADS * TIMES, 1, DEPTH)}
    arrays = arrays_of(shapes)
    library, report = built(without_mask, shapes)
    assert report.counts == {"attention": 1}
    (found,) = library(*arrays.values())
    assert first_wrong(found, expected(**arrays), "float32", KEYS) is None


@pytest.mark.skipif(GENERATION == "relay", reason="its products have three axes")
def test_four_axes():
    def program(q, k, v):
        def many(x):
            spread = op.reshape(x, shape=(1, HEADS, 1, KEYS, DEPTH))
            spread = op.broadcast_to(spread, shape=(1, HEADS, TIMES, KEYS, DEPTH))
            return op.reshape(spread, shape=(1, HEADS * TIMES, KEYS, DEPTH))

        scores = op.multiply(op.batch_matmul(q, many(k), transpose_b=True), 0.25)
        return op.batch_matmul(op.softmax(scores), many(v))

    shapes = SHAPES | {"q": (1, HEADS * TIMES, QUERIES, DEPTH)}
    arrays = arrays_of(shapes)
    library, report = built(program, shapes)
    assert report.counts == {"attention": 1}
    (found,) = library(*arrays.values())
    assert (
        first_wrong(found[0], expected(**{**arrays, "q": arrays["q"][0]}), "float32", KEYS) is None
    )


@pytest.mark.skipif(GENERATION == "relay", reason="its products have three axes")
@pytest.mark.parametrize("rows", [1, QUERIES])
@pytest.mark.parametrize("sentences", [1, 2])
def test_a_mask_of_each_sentence(sentences, rows):
    """Sentences of several lengths in a batch, with what fills them hidden."""

    def program(q, k, v, mask):
        def many(x):
            spread = op.reshape(x, shape=(sentences, HEADS, 1, KEYS, DEPTH))
            spread = op.broadcast_to(spread, shape=(sentences, HEADS, TIMES, KEYS, DEPTH))
            return op.reshape(spread, shape=(sentences, HEADS * TIMES, KEYS, DEPTH))

        scores = op.multiply(op.batch_matmul(q, many(k), transpose_b=True), 0.25)
        return op.batch_matmul(op.softmax(op.add(scores, mask)), many(v))

    keys = (sentences, HEADS, KEYS, DEPTH)
    shapes = {"q": (sentences, HEADS * TIMES, QUERIES, DEPTH), "k": keys, "v": keys}
    arrays = arrays_of(shapes | {"mask": (sentences, 1, rows, KEYS)})
    library, report = built(program, {name: x.shape for name, x in arrays.items()})
    assert report.counts == {"attention": 1}
    (found,) = library(*arrays.values())
    for n in range(sentences):
        q, k, v, mask = (x[n] for x in arrays.values())
        wanted = expected(q, k[None], v[None], mask)
        assert first_wrong(found[n], wanted, "float32", KEYS) is None


def test_what_repeats_more_than_rows_is_no_mask_of_groups():
    def tiled(q, k, v, mask):
        scores = op.batch_matmul(q, k, transpose_b=True)
        scores = op.add(scores, op.tile(mask, repeats=(1, 1, 2)))
        return op.batch_matmul(op.softmax(scores), v)

    shapes = {"q": (2, 6, 16), "k": (2, 20, 16), "v": (2, 20, 16), "mask": (1, 6, 10)}
    arrays = arrays_of(shapes)
    library, report = built(tiled, shapes)
    assert "attention" not in report.counts
    told = {**arrays, "mask": np.tile(arrays["mask"], (1, 1, 2))}
    q, k, v, mask = (array.astype("float64") for array in told.values())
    scores = q @ k.swapaxes(-1, -2) + mask
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    (found,) = library(*arrays.values())
    assert first_wrong(found, powers / powers.sum(-1, keepdims=True) @ v, "float32", 20) is None
