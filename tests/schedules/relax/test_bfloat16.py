"""Products of two bfloat16 a word. This machine may have no such instruction: what it computes is
what every CPU computes that reads words packed for another.
"""

import math

import numpy as np
import pytest
from bfloat16_models import (
    BF16,
    F32,
    as_if_words_paid,
    assert_rounded,
    dense,
    dense_in_numpy,
    given,
    model,
    plan,
    wide,
)
from symbolic_programs import UNKNOWN

import selfbyoc
from selfbyoc import emit, op
from selfbyoc.runtime.tolerance import difference
from selfbyoc.schedules.kernels.rows.halves import rounded_words
from selfbyoc.tir.lowering import finished, machine_code
from selfbyoc.tvm import empty, get_func, make_target, te, tensor
from selfbyoc.tvm.own_ops import BFLOATS


@pytest.fixture
def words(monkeypatch):
    with as_if_words_paid(monkeypatch):
        yield


@pytest.mark.parametrize(
    ("rows", "depth", "units"),
    [((5,), 33, 40), ((1,), 1024, 17), ((128,), 256, 96), ((2, 19), 63, 45), ((3, 4), 2, 600)],
)
def test_sums_of_words_are_sums_of_floats(words, rows, depth, units):
    """Inputs are of bfloat16 as they come: nothing is rounded, and sums are float32."""
    arrays = given(x=(*rows, depth), w=(units, depth), b=(units,))
    mod = model(dense, arrays)
    assert plan(mod).products == BFLOATS
    library = selfbyoc.build(mod)
    assert library.report.counts == {"dense": 1}
    (found,) = library(arrays["x"])
    assert difference(found, dense_in_numpy(*wide(arrays)), "float32", depth) is None


def test_any_number_of_rows(words):
    arrays = given(x=(61, 64), w=(48, 64), b=(48,))
    types = {name: (a.shape, "bfloat16") for name, a in arrays.items()}
    types["x"] = ((UNKNOWN, 64), "bfloat16")
    mod = emit(dense, types, {name: arrays[name] for name in "wb"})
    library = selfbyoc.build(mod)
    assert library.report.counts == {"dense": 1}
    for rows in (1, 7, 61):
        some = {**arrays, "x": arrays["x"][:rows]}
        (found,) = library(some["x"])
        assert difference(found, dense_in_numpy(*wide(some)), "float32", 64) is None


def test_one_input_is_no_word(words):
    arrays = given(x=(7, 1), w=(1030, 1), b=(1030,))
    mod = model(dense, arrays)
    assert plan(mod).products == ""
    (found,) = selfbyoc.build(mod)(arrays["x"])
    assert difference(found, dense_in_numpy(*wide(arrays)), "float32", 1) is None


def test_after_the_last_input_comes_zero(words):
    """And not the last one again: infinity times the weight's zero is no number."""
    arrays = given(x=(6, 33), w=(40, 33), b=(40,))
    arrays["x"][:, -1] = np.inf
    (found,) = selfbyoc.build(model(dense, arrays))(arrays["x"])
    np.testing.assert_array_equal(found, dense_in_numpy(*wide(arrays)))


# ---- values that our kernels have in float32, and the model in bfloat16


def normalised(x, g, b, w):
    return op.cast(op.dense(op.layer_norm(x, g, b), w), dtype="float32")


def normalised_in_numpy(x, g, b, w, rounded):
    centred = x - x.mean(-1, keepdims=True)
    return rounded(centred / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * g + b) @ w.T


def rms_normalised(x, g, w):
    return op.cast(op.dense(op.rms_norm(x, g), w), dtype="float32")


def rms_normalised_in_numpy(x, g, w, rounded):
    return rounded(x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * g) @ w.T


def chain(x, w1, b1, w2, b2):
    hidden = op.gelu(op.bias_add(op.dense(x, w1), b1, axis=-1))
    return op.cast(op.bias_add(op.dense(hidden, w2), b2, axis=-1), dtype="float32")


def chain_in_numpy(x, w1, b1, w2, b2, rounded):
    hidden = x @ w1.T + b1
    hidden = hidden * (1 + np.vectorize(math.erf)(hidden / 2**0.5)) / 2
    return rounded(hidden) @ w2.T + b2


def scaled(x, r, w):
    return op.cast(op.dense(op.add(op.multiply(x, 0.25), r), w), dtype="float32")


def scaled_in_numpy(x, r, w, rounded):
    return rounded(x / 4 + r) @ w.T


CASES = [
    ("layer_norm_dense", normalised, normalised_in_numpy,
     {"x": (5, 33), "g": (33,), "b": (33,), "w": (40, 33)}),
    ("layer_norm_dense", normalised, normalised_in_numpy,
     {"x": (2, 40, 64), "g": (64,), "b": (64,), "w": (96, 64)}),
    ("rms_norm_dense", rms_normalised, rms_normalised_in_numpy,
     {"x": (7, 48), "g": (48,), "w": (50, 48)}),
    ("dense_gelu_dense", chain, chain_in_numpy,
     {"x": (6, 33), "w1": (41, 33), "b1": (41,), "w2": (40, 41), "b2": (40,)}),
    ("dense_gelu_dense", chain, chain_in_numpy,
     {"x": (2, 100, 96), "w1": (384, 96), "b1": (384,), "w2": (96, 384), "b2": (96,)}),
    ("dense", scaled, scaled_in_numpy, {"x": (9, 47), "r": (9, 47), "w": (33, 47)}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "program", "in_numpy", "shapes"), CASES)
def test_what_a_product_reads_is_rounded_once(words, name, program, in_numpy, shapes):
    """An element between two of bfloat16 may fall to the other side: most do not."""
    arrays = given(**shapes)
    mod = model(program, arrays)
    whole = plan(mod)
    parts = [whole, *(getattr(whole, part, None) for part in ("product", "first", "second"))]
    assert {part.products for part in parts if hasattr(part, "products")} == {BFLOATS}
    library = selfbyoc.build(mod)
    assert library.report.counts == {name: 1}
    (found,) = library(arrays["x"])
    exact = in_numpy(*wide(arrays), rounded=lambda a: a)
    assert difference(found, exact, "bfloat16", shapes["x"][-1]) is None
    assert_rounded(found, arrays, in_numpy)


def test_it_is_verified(words):
    """What rounding to bfloat16 explains is no fault, and a fault is one yet."""
    arrays = given(**CASES[0][3])
    parted = selfbyoc.partition_for_tefuse(model(normalised, arrays))
    report = selfbyoc.verify(parted)
    assert "1 kernel: 1 passed" in str(report)


# ---- a word


def test_two_floats_in_a_word():
    """As ml_dtypes rounds: ties to even, infinities, denormals, what is no number."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 1 << 32, (64, 47), dtype=np.uint32)
    bits[0, :8] = (0x7F800001, 0x7FFFFFFF, 0xFFFFFFFF, 0x7F800000, 0xFF800000, 0x7F7FFFFF, 1, 0)
    bits[1, :4] = (0x3F808000, 0x3F818000, 0x3F808001, 0x00008000)
    floats = bits.view(F32)
    x = te.placeholder(floats.shape, "float32", name="x")
    made = rounded_words(x, x.shape, "x")
    func = te.create_prim_func([x, made]).with_attr("global_symbol", "main")
    target = make_target(selfbyoc.host_target())
    run = get_func(machine_code(finished(func, target), "main", target), "main")
    out = empty((64, 24), "int32")
    run(tensor(floats), out)
    padded = np.concatenate([floats, np.zeros((64, 1), F32)], axis=1)
    found = np.ascontiguousarray(out.numpy()).view(BF16).astype(F32)
    with np.errstate(invalid="ignore"):
        wanted = padded.astype(BF16).astype(F32)
    np.testing.assert_array_equal(found, wanted)
