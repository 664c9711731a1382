"""What reads no input is a constant before anything is matched."""

import numpy as np
import pytest
from tvm import relay

import selfbyoc
from selfbyoc.errors import FallbackWarning
from selfbyoc.runtime.tolerance import tolerance
from selfbyoc.simplify.relay import folding
from selfbyoc.tvm import tvm

N = 13  # no multiple of a vector
TABLE = np.random.default_rng(1).standard_normal((N, 4)).astype("float32")


def biased(x, table):
    """Softmax under a causal mask, with a bias for each distance out of a table."""
    i = relay.arange(relay.const(0), relay.const(N), relay.const(1), dtype="int32")
    rows, columns = relay.expand_dims(i, 1), relay.expand_dims(i, 0)
    apart = relay.abs(rows - columns)
    bias = relay.transpose(relay.take(table, apart, axis=0), (2, 0, 1))
    hidden = relay.greater(columns, rows)
    return relay.nn.softmax(relay.where(hidden, relay.const(-1e9), x + bias))


def expected(x):
    i = np.arange(N)
    bias = TABLE[np.abs(i[:, None] - i[None])].transpose(2, 0, 1)
    masked = np.where(i[None] > i[:, None], -np.inf, (x + bias).astype("float64"))
    e = np.exp(masked - masked.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attended():
    return tvm.IRModule.from_expr(biased(relay.var("x", shape=(4, N, N)), relay.const(TABLE)))


def left(mod):
    return selfbyoc.report(selfbyoc.partition_for_tefuse(mod)).left


def test_masks_and_biases_are_constants():
    parted = selfbyoc.partition_for_tefuse(attended())
    report = selfbyoc.report(parted)
    assert (report.counts, report.left) == ({"softmax": 1}, {"add": 1, "where": 1})
    x = np.random.default_rng(0).standard_normal((4, N, N)).astype("float32")
    found = selfbyoc.build(parted)(x)[0]
    np.testing.assert_allclose(found, expected(x), rtol=0, atol=tolerance("float32", N))


def test_what_an_input_reaches_stays():
    x, table = relay.var("x", shape=(4, N, N)), relay.var("table", shape=(N, 4))
    found = left(tvm.IRModule.from_expr(biased(x, table)))
    assert found == {"add": 1, "take": 1, "transpose": 1, "where": 1}


def typed(expr):
    return relay.transform.InferType()(tvm.IRModule.from_expr(expr))


def test_a_weight_that_is_only_moved_stays():
    weight = relay.cast(relay.const(np.ones((N, 8), "float16")), "float32")
    mod = typed(relay.nn.dense(relay.var("x", shape=(3, N)), relay.transpose(weight)))
    assert folding.fold(mod).same_as(mod)


def test_a_weight_that_is_computed_is_a_constant():
    weight = relay.const(np.full((8, N), 3, "float32")) * relay.const(0.5)
    mod = typed(relay.nn.dense(relay.var("x", shape=(3, N)), weight))
    report = selfbyoc.report(selfbyoc.partition_for_tefuse(mod))
    assert (report.counts, report.left) == ({"dense": 1}, {})


@pytest.mark.parametrize(
    ("rows", "ops"), [(256, {"add": 1}), (1024, {"add": 1, "full": 1, "multiply": 1})]
)
def test_what_grows_stays(rows, ops):
    """A mebibyte out of nothing is a constant, four are an op."""
    ones = relay.full(relay.const(1.0), (rows, 1024), "float32")
    assert left(typed(relay.var("x", shape=(1, 1024)) + ones * ones)) == ops


def test_an_item_of_a_tuple():
    parts = relay.split(relay.const(TABLE) + relay.const(1.0), 2, axis=1)
    mod = typed(relay.var("x", shape=(N, 2)) + parts[1])
    assert left(mod) == {"add": 1}
    x = np.zeros((N, 2), "float32")
    np.testing.assert_array_equal(selfbyoc.build(mod)(x)[0], TABLE[:, 2:] + np.float32(1))


def test_nothing_but_constants():
    i = relay.arange(relay.const(0), relay.const(N), relay.const(1), dtype="int32")
    np.testing.assert_array_equal(selfbyoc.build(typed(i))()[0], np.arange(N))


def test_what_cannot_be_computed_stays_with_a_warning(monkeypatch):
    def broken(*_):
        raise RuntimeError("no code for this")

    monkeypatch.setattr(folding, "_computed", broken)
    with pytest.warns(FallbackWarning, match="not computed ahead: .*no code for this"):
        parted = selfbyoc.partition_for_tefuse(attended())
    x = np.random.default_rng(0).standard_normal((4, N, N)).astype("float32")
    found = selfbyoc.build(parted)(x)[0]
    np.testing.assert_allclose(found, expected(x), rtol=0, atol=tolerance("float32", N))
