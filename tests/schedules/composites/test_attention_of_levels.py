"""Attention of levels as one kernel: what the two products and the softmax give by themselves."""

import numpy as np
import pytest
from harness import cpus
from levels import F32, bytes_of, level

import selfbyoc
from selfbyoc import op
from selfbyoc.ir.emit import emit
from selfbyoc.schedules import BUILTIN
from selfbyoc.tvm import GENERATION

APART = [composite for composite in BUILTIN if composite.name != "attention_int8"]
TARGETS = cpus(None)
TARGETS += [
    pytest.param(*t.values, marks=[*t.marks, pytest.mark.slow], id=t.id)
    for t in cpus("llvm -mcpu=haswell", "llvm -mcpu=nehalem", "llvm -mcpu=cascadelake")
]
TURNS = [(False, False, False), (True, True, False), (False, True, True)]
SIZES = [  # heads, queries, keys, depth, columns
    (3, 37, 45, 19, 21),
    (2, 16, 64, 32, 32),
    (2, 9, 99, 24, 40),
    (1, 21, 5, 1, 1),
    (1, 12, 19, 6, 8),
    (4, 40, 33, 8, 9),
]


def rounded(x, scale, zero):
    levels = op.quantize(x, scale, zero, out_dtype="uint8")
    return op.dequantize(levels, scale, zero)


def attention(steps, turns=(False, False, False)):
    """Of q [queries, depth], k [depth, keys], v [keys, columns], each turned or not."""

    def program(q, k, v, *masks):
        queries, keys = op.dequantize(q, 0.021, 126), op.dequantize(k, 0.033, 119)
        scores = op.batch_matmul(queries, keys, transpose_a=turns[0], transpose_b=turns[1])
        powers = rounded(op.softmax(steps(scores, *masks)), 1 / 255, 0)
        values = op.dequantize(v, 0.017, 131)
        weighted = op.batch_matmul(powers, values, transpose_b=turns[2])
        return op.quantize(weighted, 0.011, 122, out_dtype="uint8")

    return program


def plain(scores):
    return scores


def scaled(scores):
    return rounded(op.multiply(rounded(scores, 0.25, 134), 0.3), 0.044, 134)


def masked(scores, mask):
    return rounded(op.add(op.divide(rounded(scores, 0.25, 134), 3.3), mask), 0.05, 100)


def sides(rng, size, turns):
    heads, queries, keys, depth, columns = size
    shapes = [(queries, depth), (depth, keys), (keys, columns)]
    shapes = [(heads, *(s[::-1] if turned else s)) for s, turned in zip(shapes, turns, strict=True)]
    return {name: bytes_of(rng, s, "uint8") for name, s in zip("qkv", shapes, strict=True)}


def built(program, arrays, target=None, **options):
    if arrays.get("mask") is not None:
        inner = program

        def program(q, k, v, mask):
            return inner(q, k, v, mask)
    else:
        inner = program

        def program(q, k, v):
            return inner(q, k, v)

    types = {name: (a.shape, str(a.dtype)) for name, a in arrays.items()}
    library = selfbyoc.build(emit(program, types, {}), target, **options)
    assert not library.unscheduled
    return library.report.counts, library(*arrays.values())[0]


def both(program, arrays, target=None):
    """By one kernel, which must be used; and by three."""
    counts, found = built(program, arrays, target)
    assert counts == {"attention_int8": 1}
    counts, wanted = built(program, arrays, target, composites=APART)
    assert counts == {"batch_matmul_int8": 2, "softmax": 1}
    return found, wanted


@pytest.mark.parametrize("turns", TURNS)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_every_level_is_that_of_three_kernels(size, turns, target):
    arrays = sides(np.random.default_rng(0), size, turns)
    found, wanted = both(attention(scaled, turns), arrays, target)
    assert len(np.unique(wanted)) > 3
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize("shape", [(2, 1, 70), (1, 33, 70), (2, 33, 70)])
def test_a_mask_is_added_before_the_softmax(shape):
    rng = np.random.default_rng(1)
    mask = np.where(rng.random(shape) < 0.2, -1e4, rng.standard_normal(shape)).astype(F32)
    arrays = {**sides(rng, (2, 33, 70, 24, 32), TURNS[0]), "mask": mask}
    found, wanted = both(attention(masked), arrays)
    assert np.array_equal(found, wanted)


def test_the_levels_are_those_of_numpy():
    """But for a few that lie near a half, as NumPy's powers are others."""
    q, k, v = (arrays := sides(np.random.default_rng(2), (2, 24, 40, 16, 24), TURNS[0])).values()
    _, found = built(attention(scaled), arrays)
    wide = [a.astype("int64") - zero for a, zero in ((q, 126), (k, 119), (v, 131))]
    scores = (wide[0] @ wide[1]).astype(F32) * (F32(0.021) * F32(0.033))
    for factor, scale in ((1, 0.25), (0.3, 0.044)):
        levels = level(scores * F32(factor), scale, 134).astype(F32)
        scores = (levels - F32(134)) * F32(scale)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    levels = level(powers / powers.sum(-1, keepdims=True), 1 / 255, 0)
    weighted = (levels.astype("int64") @ wide[2]).astype(F32) * (F32(1 / 255) * F32(0.017))
    wanted = level(weighted, 0.011, 122)
    far = np.abs(found.astype(int) - wanted)
    assert far.max() <= 3
    assert (far > 0).mean() < 0.02


def test_nothing_need_be_between_the_product_and_the_softmax():
    arrays = sides(np.random.default_rng(3), (2, 12, 50, 16, 24), TURNS[0])
    found, wanted = both(attention(plain), arrays)
    assert np.array_equal(found, wanted)


@pytest.mark.skipif(GENERATION == "relay", reason="Relay's batch_matmul has three axes")
def test_heads_of_several_sequences():
    rng = np.random.default_rng(4)
    shapes = {"q": (2, 3, 20, 16), "k": (2, 1, 16, 35), "v": (2, 1, 35, 24)}
    arrays = {name: bytes_of(rng, shape, "uint8") for name, shape in shapes.items()}
    found, wanted = both(attention(scaled), arrays)
    assert np.array_equal(found, wanted)


def refused(program, **types):
    found = selfbyoc.report(selfbyoc.partition_for_tefuse(emit(program, types, {})))
    assert "attention_int8" not in found.counts
    return " ".join(record.reason for record in found.records)


def three(queries, **dtypes):
    shapes = {"q": (2, queries, 8), "k": (2, 8, 20), "v": (2, 20, 8)}
    return {name: (shape, dtypes.get(name, "uint8")) for name, shape in shapes.items()}


def test_few_queries_are_refused():
    def program(q, k, v):
        return attention(scaled)(q, k, v)

    assert "4 queries fill no vector" in refused(program, **three(4))


def test_scores_that_are_read_twice_are_refused():
    def squared(scores):
        return op.multiply(scores, scores)

    def program(q, k, v):
        return attention(squared)(q, k, v)

    assert "reads 2 values that are made of scores" in refused(program, **three(9))
