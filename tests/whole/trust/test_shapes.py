"""Shapes that a compute does not take: refused with a reason, and right by another way."""

import numpy as np
import pytest
from against_numpy import normal, normalised, refusals, taken

from selfbyoc import Composite, op
from selfbyoc.tvm import GENERATION, te

relax_only = pytest.mark.skipif(GENERATION == "relay", reason="Relay's product has other ranks")


def attention(q, k, v):
    scores = op.multiply(op.batch_matmul(q, k, transpose_b=True), 0.5)
    return op.batch_matmul(op.softmax(scores), v)


def check(program, shapes, counts, reason="", constants=()):
    """What is taken of a program, and why the first composite is not."""
    arrays = {n: normal(*shape, seed=len(n)) for n, shape in shapes.items()}
    weights = {n: arrays.pop(n) for n in constants}
    assert taken(program, arrays, weights) == counts
    found = refusals(program, arrays, weights)
    assert any(reason in text for text in found.values()) if reason else not found


@pytest.mark.parametrize("kind", ["softmax", "layer_norm"])
def test_one_axis(kind):
    def program(x, g, b):
        return op.softmax(x) if kind == "softmax" else op.layer_norm(x, g, b)

    shapes = {"x": (8,), "g": (8,), "b": (8,)}
    arrays = {n: normal(*shape) for n, shape in shapes.items() if kind != "softmax" or n == "x"}
    assert taken(program, arrays) == {}
    assert "of one row has no rows to share out" in refusals(program, arrays)[kind]


@pytest.mark.parametrize(
    ("x", "r"), [((1, 8), (4, 8)), ((4, 8), (2, 4, 8)), ((4, 8), (1, 4, 8)), ((4, 1, 8), (4, 3, 8))]
)
def test_a_residual_larger_than_the_product(x, r):
    if len(x) > 2 and GENERATION == "relay":
        pytest.skip("Relay's dense has two axes")
    shapes = {"x": x, "w": (8, 8), "r": r}
    check(lambda x, w, r: op.add(r, op.dense(x, w)), shapes, {"dense": 1}, "by broadcasting", "w")


def test_a_residual_larger_than_two_products():
    def program(x, w, b, r):
        hidden = op.gelu(op.bias_add(op.dense(x, w), b))
        return op.add(op.bias_add(op.dense(hidden, w), b), r)

    shapes = {"x": (1, 8), "w": (8, 8), "b": (8,), "r": (3, 8)}
    check(program, shapes, {"dense_gelu_dense": 1}, "by broadcasting", ("w", "b"))


@pytest.mark.parametrize(("x", "r"), [((1, 3, 4, 4), (2, 3, 4, 4)), ((1, 3, 4, 4), (1, 1, 4, 4))])
def test_a_residual_of_another_size_than_the_convolution(x, r):
    shapes = {"x": x, "w": (3, 3, 1, 1), "r": r}
    reason = "residual must be as large"
    check(lambda x, w, r: op.add(op.conv2d(x, w), r), shapes, {"conv2d": 1}, reason, "w")


@pytest.mark.parametrize(
    ("channels", "out", "size", "reason"),
    [(4, 1, 8, "by broadcasting"), (1, 4, 8, ""), (4, 4, 3, "by broadcasting")],
    ids=["wide", "narrow", "pixel"],
)
def test_an_inverted_residual_that_is_broadcast(channels, out, size, reason):
    """What makes the result larger stays outside; a sum with a smaller tensor joins."""

    def program(x, e, d, p):
        y = op.clip(op.conv2d(x, e))
        y = op.clip(op.conv2d(y, d, groups=12, padding=1 if size > 3 else 0))
        return op.add(op.conv2d(y, p), x)

    shapes = {"e": (12, channels, 1, 1), "d": (12, 1, 3, 3), "p": (out, 12, 1, 1)}
    shapes = {"x": (1, channels, size, size), **shapes}
    check(program, shapes, {"inverted_residual": 1}, reason, ("e", "d", "p"))


@pytest.mark.parametrize("batches", [(1, 4, 4), (4, 1, 1), (4, 4, 1), (4, 1, 4), (1, 4, 1)])
def test_batches_that_broadcast(batches):
    q, k, v = batches
    shapes = {"q": (q, 5, 8), "k": (k, 7, 8), "v": (v, 7, 6)}
    check(attention, shapes, {"attention": 1})


def test_values_of_more_batches():
    shapes = {"q": (1, 5, 8), "k": (1, 7, 8), "v": (4, 7, 6)}
    apart = {"softmax": 1, "batch_matmul": 2}
    check(attention, shapes, apart, "the values have more batches than the scores")


@relax_only
def test_batches_of_several_axes():
    shapes = {"q": (2, 3, 5, 8), "k": (1, 3, 7, 8), "v": (2, 1, 7, 6)}
    check(attention, shapes, {"attention": 1})
    shapes = {"q": (5, 8), "k": (4, 7, 8), "v": (4, 7, 6)}
    check(attention, shapes, {"attention": 1})
    shapes = {"q": (2, 1, 5, 8), "k": (1, 7, 8), "v": (3, 7, 6)}
    check(attention, shapes, {"softmax": 1, "batch_matmul": 2}, "more batches")


@relax_only
def test_a_query_of_one_axis():
    """A product with a vector has an axis less, so that it is no product of batches."""
    from tvm import relax

    import selfbyoc

    builder = relax.BlockBuilder()
    shapes = {"q": (8,), "k": (4, 8, 7), "v": (4, 7, 6)}
    params = [relax.Var(n, relax.TensorType(s, "float32")) for n, s in shapes.items()]
    with builder.function("main", params):
        q, k, v = params
        with builder.dataflow():
            scores = builder.emit(relax.op.nn.softmax(builder.emit(relax.op.matmul(q, k))))
            row = builder.emit(relax.op.expand_dims(scores, 1))
            out = builder.emit_output(relax.op.matmul(row, v))
        builder.emit_func_output(out)
    library = selfbyoc.build(builder.get())
    assert library.report.counts == {"softmax": 1, "batch_matmul": 1}
    given = {n: normal(*s) for n, s in shapes.items()}
    exps = np.exp(np.einsum("d,bdk->bk", given["q"], given["k"]))
    rows = exps / exps.sum(-1, keepdims=True)
    expected = np.einsum("bk,bke->be", rows, given["v"])[:, None]
    np.testing.assert_allclose(library(**given)[0], expected, rtol=1e-5, atol=1e-6)


def erf_gelu(x, half, one, root):
    gate = op.add(op.erf(op.divide(x, root)), one)
    return op.multiply(op.multiply(x, half), gate)


def number(value, ndim):
    return np.full((1,) * ndim, value, "float32")


@pytest.mark.parametrize("ndim", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("which", ["half", "one", "root"])
def test_constants_of_gelu_of_any_rank(which, ndim):
    numbers = {"half": 0.5, "one": 1.0, "root": np.sqrt(2)}
    constants = {n: number(v, ndim if n == which else 0) for n, v in numbers.items()}

    def program(x, w, half, one, root):
        return erf_gelu(op.dense(x, w), half, one, root)

    constants["w"] = normal(17, 9)
    assert taken(program, {"x": normal(3, 9)}, constants) == {"dense": 1}


@pytest.mark.parametrize("ndim", [0, 1, 2, 3, 4])
def test_an_epsilon_of_any_rank(ndim):
    constants = {"epsilon": number(1e-3, ndim), "gamma": normal(9), "beta": normal(9, seed=1)}
    counts = taken(normalised, {"x": normal(3, 9)}, constants)
    assert counts == ({"layer_norm": 1} if ndim < 3 else {})


@pytest.mark.parametrize("ndim", [0, 2, 3])
def test_a_number_of_a_pattern(ndim):
    """A compute of a user's for the whole of it has a shape of its own."""

    def halved(x):
        return te.compute(x.shape, lambda *i: x(*i) * 0.5 + 1.0, name="halved")

    def program(x, half):
        return op.add(op.multiply(x, half), 1.0)

    composite = Composite("halved", lambda x: op.add(op.multiply(x, 0.5), 1.0), compute=halved)
    half = {"half": number(0.5, ndim)}
    counts = taken(program, {"x": normal(3, 9)}, half, composites=[composite])
    assert counts == ({"halved": 1} if ndim < 3 else {})


@pytest.mark.parametrize("ndim", [0, 2, 3])
def test_bounds_of_any_rank(ndim):
    def program(x, w, low, high):
        return op.minimum(op.maximum(op.dense(x, w), low), high)

    constants = {"low": number(0.0, ndim), "high": number(0.5, ndim), "w": normal(17, 9)}
    assert taken(program, {"x": normal(3, 9)}, constants) == {"dense": 1}


@pytest.mark.parametrize("ndim", [0, 3, 4])
def test_a_scale_of_any_rank(ndim):
    def program(q, k, v, scale):
        scores = op.multiply(op.batch_matmul(q, k, transpose_b=True), scale)
        return op.batch_matmul(op.softmax(scores), v)

    args = {"q": normal(4, 5, 8), "k": normal(4, 7, 8), "v": normal(4, 7, 6)}
    if ndim == 4 and GENERATION == "relay":
        pytest.skip("Relay's product has three axes")
    counts = taken(program, args, {"scale": number(0.3, ndim)})
    apart = {"softmax": 1, "batch_matmul": 2}
    assert counts == ({"attention": 1} if ndim < 4 else apart)
