"""What reads no input is a constant before anything is matched."""

import numpy as np
import pytest
from tvm import relax

import selfbyoc
from selfbyoc.errors import FallbackWarning
from selfbyoc.runtime.tolerance import tolerance
from selfbyoc.simplify.folding import size_of
from selfbyoc.simplify.relax import folding

N = 13  # no multiple of a vector


def module(write, *shapes):
    """main over float32 inputs of these shapes."""
    params = [relax.Var(f"x{n}", relax.TensorType(s, "float32")) for n, s in enumerate(shapes)]
    builder = relax.BlockBuilder()
    with builder.function("main", params):
        with builder.dataflow():
            out = builder.emit_output(write(builder.emit, *params))
        builder.emit_func_output(out)
    return builder.get()


def biased(emit, x, table):
    """Softmax under a causal mask, with a bias for each distance out of a table."""
    i = emit(relax.op.arange(0, N, 1, "int32"))
    rows, columns = emit(relax.op.expand_dims(i, 1)), emit(relax.op.expand_dims(i, 0))
    apart = emit(relax.op.abs(emit(relax.op.subtract(rows, columns))))
    bias = emit(relax.op.permute_dims(emit(relax.op.take(table, apart, 0)), [2, 0, 1]))
    hidden = emit(relax.op.greater(columns, rows))
    masked = emit(relax.op.where(hidden, relax.const(-1e9, "float32"), emit(relax.op.add(x, bias))))
    return relax.op.nn.softmax(masked)


TABLE = np.random.default_rng(1).standard_normal((N, 4)).astype("float32")


def expected(x):
    i = np.arange(N)
    bias = TABLE[np.abs(i[:, None] - i[None])].transpose(2, 0, 1)
    masked = np.where(i[None] > i[:, None], -np.inf, (x + bias).astype("float64"))
    e = np.exp(masked - masked.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def test_masks_and_biases_are_constants():
    mod = module(lambda emit, x: biased(emit, x, relax.const(TABLE)), (4, N, N))
    parted = selfbyoc.partition_for_tefuse(mod)
    report = selfbyoc.report(parted)
    assert report.counts == {"softmax": 1}
    assert report.left == {"add": 1, "where": 1}
    x = np.random.default_rng(0).standard_normal((4, N, N)).astype("float32")
    found = selfbyoc.build(parted)(x)[0]
    np.testing.assert_allclose(found, expected(x), rtol=0, atol=tolerance("float32", N))


def test_what_an_input_reaches_stays():
    """The table is an input: only the distances and the mask are known."""
    mod = module(biased, (4, N, N), (N, 4))
    left = selfbyoc.report(selfbyoc.partition_for_tefuse(mod)).left
    assert left == {"add": 1, "take": 1, "transpose": 1, "where": 1}


def test_a_weight_that_is_only_moved_stays():
    weight = relax.const(np.ones((8, N), "float16"))

    def write(emit, x):
        cast = emit(relax.op.astype(weight, "float32"))
        return relax.op.matmul(x, emit(relax.op.permute_dims(cast)))

    before = module(write, (3, N))
    after = folding.fold(before)
    assert after.same_as(before)


def test_a_weight_that_is_computed_is_a_constant():
    weight = relax.const(np.full((8, N), 3, "float32"))

    def write(emit, x):
        scaled = emit(relax.op.multiply(weight, relax.const(0.5, "float32")))
        return relax.op.matmul(x, emit(relax.op.permute_dims(scaled)))

    report = selfbyoc.report(selfbyoc.partition_for_tefuse(module(write, (3, N))))
    assert (report.counts, report.left) == ({"dense": 1}, {})


def test_what_grows_stays():
    """A mebibyte out of nothing is a constant, four are an op."""

    def left(n):
        def write(emit, x):
            ones = emit(relax.op.full((n, 1024), relax.const(1.0, "float32")))
            return relax.op.add(x, emit(relax.op.multiply(ones, ones)))

        return selfbyoc.report(selfbyoc.partition_for_tefuse(module(write, (1, 1024)))).left

    assert left(256) == {"add": 1}
    assert left(1024) == {"add": 1, "full": 1, "multiply": 1}


def test_an_effect_is_no_value():
    def write(emit, x):
        emit(relax.op.assert_op(relax.const(True, "bool"), format="never"))
        return relax.op.add(x, emit(relax.op.arange(0, N, 1, "float32")))

    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((N,), "float32"))
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(write(builder.emit, x)))
    parted = selfbyoc.partition_for_tefuse(builder.get())
    assert selfbyoc.report(parted).left == {"add": 1, "assert_op": 1}
    zeros = np.zeros(N, "float32")
    np.testing.assert_array_equal(selfbyoc.build(parted)(zeros)[0], np.arange(N))


def test_nothing_but_constants():
    mod = module(lambda emit: relax.op.arange(0, N, 1, "int64"))
    np.testing.assert_array_equal(selfbyoc.build(mod)()[0], np.arange(N))


def test_a_symbol_is_no_constant():
    n = relax.TensorType
    builder = relax.BlockBuilder()
    from tvm import tirx

    length = tirx.Var("n", "int64")
    x = relax.Var("x", n((length,), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            steps = builder.emit(relax.op.arange(0, length, 1, "float32"))
            out = builder.emit_output(relax.op.add(x, steps))
        builder.emit_func_output(out)
    before = builder.get()
    assert folding.fold(before).same_as(before)


def test_what_cannot_be_computed_stays_with_a_warning(monkeypatch):
    def broken(*_):
        raise RuntimeError("no code for this")

    monkeypatch.setattr(folding, "_computed", broken)
    mod = module(lambda emit, x: biased(emit, x, relax.const(TABLE)), (4, N, N))
    with pytest.warns(FallbackWarning, match="not computed ahead: .*no code for this"):
        parted = selfbyoc.partition_for_tefuse(mod)
    x = np.random.default_rng(0).standard_normal((4, N, N)).astype("float32")
    found = selfbyoc.build(parted)(x)[0]
    np.testing.assert_allclose(found, expected(x), rtol=0, atol=tolerance("float32", N))


def test_sizes():
    assert size_of((3, 5), "float32") == 60
    assert size_of((3, 5), "bool") == 15
    assert size_of((3, 5), "bfloat16") == 30
