"""Attention, and products of two computed sides, of words of two bfloat16, by what CPUs compute
that have no instruction for them.
"""

import re

import numpy as np
import pytest
from bfloat16_models import BF16, F32, F64, as_if_words_paid, assert_rounded, plan
from symbolic_programs import UNKNOWN

import selfbyoc
from selfbyoc import emit, op
from selfbyoc.analysis.kernels import kernels
from selfbyoc.codegen.cache.kernels import using
from selfbyoc.codegen.lower import lower
from selfbyoc.errors import MatchWarning
from selfbyoc.runtime.tolerance import difference
from selfbyoc.schedules.kernels.attention.forms import BlockPlan
from selfbyoc.schedules.kernels.matmul.rounded import RoundedMatmulPlan
from selfbyoc.tvm import make_target, module_source

HEADS = {"axes": (0, 2, 1, 3)}


@pytest.fixture
def words(monkeypatch):
    with as_if_words_paid(monkeypatch):
        yield


def plain(q, k, v):
    scores = op.multiply(op.batch_matmul(q, k, transpose_b=True), 0.125)
    return op.cast(op.batch_matmul(op.softmax(scores), v), dtype="float32")


def by_depth(q, k, v, mask):
    scores = op.add(op.batch_matmul(op.multiply(q, 0.25), k), mask)
    return op.cast(op.batch_matmul(op.softmax(scores), v, transpose_b=True), dtype="float32")


def of_heads(q, k, v):
    q, k, v = (op.transpose(side, **HEADS) for side in (q, k, v))
    scores = op.multiply(op.batch_matmul(q, k, transpose_b=True), 0.125)
    weighted = op.batch_matmul(op.softmax(scores), v)
    return op.cast(op.transpose(weighted, **HEADS), dtype="float32")


def attended(q, k, v, scale, mask=0.0, rounded=lambda a: a):
    """Rows of queries, keys and values; the powers are rounded, and not their sum."""
    scores = scale * q @ k.swapaxes(-1, -2) + mask
    power = np.exp(scores - scores.max(-1, keepdims=True))
    return rounded(power) @ v / power.sum(-1, keepdims=True)


def plain_in_numpy(q, k, v, **rounded):
    return attended(q, k, v, 0.125, **rounded)


def by_depth_in_numpy(q, k, v, mask, **rounded):
    return attended(q, k.swapaxes(-1, -2), v.swapaxes(-1, -2), 0.25, mask, **rounded)


def of_heads_in_numpy(q, k, v, **rounded):
    q, k, v = (side.transpose(0, 2, 1, 3) for side in (q, k, v))
    return attended(q, k, v, 0.125, **rounded).transpose(0, 2, 1, 3)


def model(program, arrays):
    return emit(program, {name: (a.shape, str(a.dtype)) for name, a in arrays.items()})


def given(**shapes):
    rng = np.random.default_rng(0)
    return {name: rng.standard_normal(shape).astype(BF16) for name, shape in shapes.items()}


def same(rows, keys, depth, columns, *batch):
    return {"q": (*batch, rows, depth), "k": (*batch, keys, depth), "v": (*batch, keys, columns)}


def interleaved(batch, heads, rows, keys, depth, columns):
    return {
        "q": (batch, rows, heads, depth), "k": (batch, keys, heads, depth),
        "v": (batch, keys, heads, columns),
    }  # fmt: skip


CASES = [
    ("attention", plain, plain_in_numpy, same(128, 128, 64, 64, 3)),
    ("attention", plain, plain_in_numpy, same(33, 45, 19, 37, 2)),  # odd everywhere
    ("attention", plain, plain_in_numpy, same(21, 62, 32, 64, 2, 3)),
    ("attention", by_depth, by_depth_in_numpy,
     {"q": (2, 35, 40), "k": (2, 40, 51), "v": (2, 48, 51), "mask": (1, 35, 51)}),
    ("attention_of_heads", of_heads, of_heads_in_numpy, interleaved(1, 4, 64, 64, 32, 32)),
    ("attention_of_heads", of_heads, of_heads_in_numpy, interleaved(2, 3, 37, 51, 33, 20)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "program", "in_numpy", "shapes"), CASES)
def test_both_products(words, name, program, in_numpy, shapes):
    """Powers are rounded as a product reads them; an element between two may fall aside."""
    arrays = given(**shapes)
    mod = model(program, arrays)
    found = plan(mod)
    assert isinstance(found, BlockPlan)
    assert found.words
    library = selfbyoc.build(mod)
    assert library.report.counts == {name: 1}
    (found,) = library(*arrays.values())
    assert_rounded(found, arrays, in_numpy)


@pytest.mark.parametrize(("rows", "keys"), [(35, 51), (64, 96), (100, 33)])
def test_words_that_no_query_sees(words, rows, keys):
    arrays = given(q=(2, rows, 40), k=(2, 40, keys), v=(2, 48, keys))
    sees = np.arange(keys) <= np.arange(rows)[:, None] + max(keys - rows, 0)
    arrays["mask"] = np.where(sees, 0, -np.inf).astype(BF16)[None]
    mod = model(by_depth, arrays)
    assert plan(mod).words
    (found,) = selfbyoc.build(mod)(*arrays.values())
    assert_rounded(found, arrays, by_depth_in_numpy)


def test_it_is_verified(words):
    """What rounding to bfloat16 explains is no fault, and a fault is one yet."""
    parted = selfbyoc.partition_for_tefuse(model(plain, given(**CASES[1][3])))
    assert "1 kernel: 1 passed" in str(selfbyoc.verify(parted))


@pytest.mark.parametrize(
    "shapes", [same(1, 128, 64, 64, 2), same(8, 128, 64, 64, 2), same(64, 64, 64, 8, 2)]
)
def test_what_is_multiplied_seldom_is_of_floats(words, shapes):
    mod = model(plain, given(**shapes))
    assert not getattr(plan(mod), "words", False)
    counts = selfbyoc.report(selfbyoc.partition_for_tefuse(mod)).counts
    assert counts == {"attention": 1}


def test_any_number_of_keys_is_of_floats(words):
    arrays = given(**same(45, 45, 32, 32, 2))
    types = {name: ((2, UNKNOWN, 32), "bfloat16") for name in arrays}
    library = selfbyoc.build(emit(plain, types))
    assert library.report.counts == {"attention": 1}
    (found,) = library(*arrays.values())
    wanted = plain_in_numpy(*(a.astype(F64) for a in arrays.values()))
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_what_a_model_has_in_floats_stays_in_floats(words):
    arrays = {name: a.astype(F32) for name, a in given(**same(64, 64, 32, 32, 2)).items()}
    assert not plan(model(plain, arrays)).words


# ---- a product by itself


@pytest.mark.parametrize(
    ("x", "y", "turned"),
    [((3, 37, 33), (3, 33, 45), {}), ((2, 64, 128), (2, 96, 128), {"transpose_b": True}),
     ((2, 4, 41, 50), (2, 4, 41, 32), {"transpose_a": True}), ((1, 200, 64), (1, 64, 48), {}),
     ((2, 19, 40), (2, 33, 19), {"transpose_a": True, "transpose_b": True})],
)  # fmt: skip
def test_a_product_by_itself(words, x, y, turned):
    """What it reads is of bfloat16: nothing is rounded, and sums are float32."""
    arrays = given(x=x, y=y)

    def program(x, y):
        return op.cast(op.batch_matmul(x, y, **turned), dtype="float32")

    mod = model(program, arrays)
    assert isinstance(plan(mod), RoundedMatmulPlan)
    library = selfbyoc.build(mod)
    assert library.report.counts == {"batch_matmul": 1}
    (found,) = library(*arrays.values())
    left, right = (a.astype(F64) for a in arrays.values())
    left = left.swapaxes(-1, -2) if "transpose_a" in turned else left
    right = right.swapaxes(-1, -2) if "transpose_b" in turned else right
    assert difference(found, left @ right, "float32", left.shape[-1]) is None


def test_a_product_that_nobody_takes_has_no_step_of_its_own():
    """What marked it goes."""
    arrays = given(x=(2, 3, 5), y=(2, 5, 3))

    def program(x, y):
        return op.cast(op.batch_matmul(x, y), dtype="float32")

    with pytest.warns(MatchWarning):
        parted = selfbyoc.partition_for_tefuse(model(program, arrays))
    assert "half_factor" not in str(parted["main"])


@pytest.mark.parametrize("cpu", ["znver4", "cooperlake"])
def test_the_instruction(cpu):
    """In both products, and none of floats beside it but for the powers."""
    mod = model(plain, given(**same(128, 128, 64, 64, 12)))
    text = assembly(mod, f"llvm -mcpu={cpu}")
    blocks = [b for b in re.split(r"\n\.LBB\w+:", text) if b.count("vdpbf16ps") >= 16]
    assert len(blocks) == 2
    assert not any("vfmadd" in block for block in blocks)
    for other in ("sapphirerapids", "haswell"):
        assert "vdpbf16ps" not in assembly(mod, f"llvm -mcpu={other}")


@pytest.mark.parametrize("turned", [False, True])
def test_the_instruction_of_a_product_by_itself(turned):
    def program(x, y):
        return op.cast(op.batch_matmul(x, y, transpose_b=turned), dtype="float32")

    y = (12, 96, 64) if turned else (12, 64, 96)
    text = assembly(model(program, given(x=(12, 128, 64), y=y)), "llvm -mcpu=znver4")
    blocks = [b for b in re.split(r"\n\.LBB\w+:", text) if "vdpbf16ps" in b]
    assert max(block.count("vdpbf16ps") for block in blocks) >= 16
    assert "vfmadd" not in text


def assembly(mod, target):
    target = make_target(target)
    (kernel,) = kernels(selfbyoc.partition_for_tefuse(mod, target=target))
    with using(False):
        return module_source(lower(kernel.source, target), "asm")
