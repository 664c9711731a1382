"""What the ranges of integers decide is computed by nobody; all else stays as it was."""

import itertools

import numpy as np
import pytest
from tvm import relax

import selfbyoc
from selfbyoc.partition.relax import prepare
from selfbyoc.simplify import intervals
from selfbyoc.tvm import tir

N = tir.Var("n", "int64")
IDS = np.arange(64, dtype="int64")[None]
TABLE = np.random.default_rng(0).standard_normal((64, 5)).astype("float32")
FEW = np.random.default_rng(1).standard_normal((2, 5)).astype("float32")


def const(array, dtype=None):
    return relax.const(np.asarray(array, dtype), dtype or str(array.dtype))


def turned(emit, index, extent):
    """A negative index as importers mend it."""
    below = emit(relax.op.less(index, const(0, "int64")))
    return emit(relax.op.where(below, emit(relax.op.add(index, const(extent, "int64"))), index))


def counted(emit, shape=(1, N)):
    return emit(relax.op.reshape(emit(relax.op.arange(0, N, 1, "int64")), shape))


def sliced(emit, array):
    return emit(relax.op.strided_slice(const(array), [1], [0], [N], [1], assume_inbound=True))


def embeddings(emit, ids):
    """Of words, of positions and of a kind that is 0 for all, as BERT has them."""
    places, kinds = sliced(emit, IDS), sliced(emit, IDS * 0)
    words = emit(relax.op.take(const(TABLE), turned(emit, ids, 64), axis=0))
    words = emit(relax.op.add(words, emit(relax.op.take(const(FEW), turned(emit, kinds, 2), 0))))
    return relax.op.add(words, emit(relax.op.take(const(TABLE), turned(emit, places, 64), 0)))


def of_all_rows(emit, ids):
    rows = emit(relax.op.astype(emit(relax.op.reshape(ids, (N, 1))), "float32"))
    return relax.op.take(rows, turned(emit, counted(emit), 64), axis=0)


def masked(emit, ids):
    """arange(n) >= 0 and the mask, for each pair of places."""
    here = emit(relax.op.greater_equal(counted(emit, (1, N, 1)), const(0, "int64")))
    told = emit(relax.op.reshape(emit(relax.op.greater(ids, const(3, "int64"))), (1, 1, N)))
    both = emit(relax.op.logical_and(here, told))
    return relax.op.where(both, const(0.0, "float32"), const(-9.0, "float32"))


def causal(emit, ids):
    """No range decides it."""
    sees = emit(relax.op.less_equal(counted(emit, (1, N)), counted(emit, (N, 1))))
    return relax.op.where(sees, emit(relax.op.reshape(ids, (1, N))), const(-1, "int64"))


def wrapped(emit, ids):
    wide = emit(relax.op.astype(counted(emit), "int32"))
    far = emit(
        relax.op.multiply(emit(relax.op.add(wide, const(1, "int32"))), const(2**30, "int32"))
    )
    return relax.op.where(emit(relax.op.greater(far, const(0, "int32"))), ids, const(-1, "int64"))


def softmax_of(x):
    """Something to be compiled beside it."""
    return relax.op.nn.softmax(relax.op.astype(x, "float32"))


def module(program):
    builder = relax.BlockBuilder()
    ids = relax.Var("ids", relax.TensorType((1, N), "int64"))
    with builder.function("main", [ids]):
        with builder.dataflow():
            made = builder.emit(program(builder.emit, ids))
            out = builder.emit_output(softmax_of(made))
        builder.emit_func_output(out)
    return builder.get()


def ops(mod):
    return [b.value.op.name.removeprefix("relax.") for b in mod["main"].body.blocks[0].bindings]


def soft(x):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def wanted(program, ids):
    n = ids.shape[1]
    if program is embeddings:
        return TABLE[ids] + FEW[0] + TABLE[:n]
    if program is of_all_rows:
        return ids[..., None]
    if program is masked:
        return np.where((ids > 3)[:, None] & np.ones((1, n, 1), bool), 0.0, -9.0)
    if program is causal:
        return np.where(np.tri(n, dtype=bool), ids, -1)
    raise AssertionError(program)


LEFT = {
    embeddings: ["less", "add", "where", "take", "add", "strided_slice", "add"],
    of_all_rows: ["reshape", "astype", "reshape"],
    masked: ["greater", "reshape", "where", "broadcast_to"],
    causal: ["arange", "reshape", "arange", "reshape", "less_equal", "reshape", "where"],
}


@pytest.mark.parametrize("program", LEFT)
def test_only_what_data_decide_is_left(program):
    mod = module(program)
    left = ops(prepare(mod, None))
    assert left[: len(LEFT[program])] == LEFT[program]
    assert set(left[len(LEFT[program]) :]) <= {"astype", "nn.softmax"}  # softmax_of
    library = selfbyoc.build(mod)
    rng = np.random.default_rng(2)
    for n in (1, 2, 7, 33, 64):
        ids = rng.integers(-64, 64, (1, n))
        (found,) = library(ids)
        expected = soft(np.asarray(wanted(program, ids), "float32"))
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_sums_that_leave_their_dtype_are_not_known():
    assert "where" in ops(prepare(module(wrapped), None))


@pytest.mark.parametrize("name", intervals.OF_TWO)
def test_intervals_hold_what_ops_make(name):
    """Of all pairs of small intervals, whatever their elements."""
    meaning = getattr(np, name)
    ends = [(a, b) for a in range(-2, 3) for b in range(a, 3)]
    if name.startswith("logical"):
        ends = [(0, 0), (0, 1), (1, 1)]
    for one, other in itertools.product(ends, ends):
        least, most = intervals.OF_TWO[name](one, other)
        pairs = itertools.product(range(one[0], one[1] + 1), range(other[0], other[1] + 1))
        made = {int(meaning(a, b)) for a, b in pairs}
        assert least <= min(made)
        assert max(made) <= most


def test_what_is_broadcast_to_a_size_of_the_data_stays():
    """Nobody knows its shape when the model is read."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, 4), "float32"))
    size = relax.Var("size", relax.TensorType((2,), "int64"))
    with builder.function("main", [x, size]):
        with builder.dataflow():
            shape = builder.emit(relax.op.tensor_to_shape(size))
            wide = builder.emit(relax.op.broadcast_to(x, shape))
            out = builder.emit_output(relax.op.add(wide, relax.const(1.0, "float32")))
        builder.emit_func_output(out)
    left = ops(prepare(builder.get(), None))
    assert left == ["tensor_to_shape", "broadcast_to", "add"]
