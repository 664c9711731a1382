"""Schedules for a GPU: which chains become one kernel, and what the GPU's facts change."""

import numpy as np
import pytest
from on_gpu import needs_opencl, verified

import selfbyoc
from selfbyoc import Case, Composite, op
from selfbyoc.analysis.gpu.cases import made
from selfbyoc.analysis.gpu.checks import check
from selfbyoc.analysis.kernels import kernels
from selfbyoc.codegen.external import PACKED
from selfbyoc.machine.gpu import Gpu, gpu, is_gpu
from selfbyoc.schedules.gpu import block
from selfbyoc.tvm import GENERATION, make_target

CUDA = {"kind": "cuda", "arch": "sm_80"}
FAMILIES = (
    "attention", "attention_of_heads", "batch_matmul", "dense_gelu_dense", "layer_norm",
    "layer_norm_dense", "rms_norm", "rms_norm_dense", "softmax",
)  # fmt: skip
KNOWN = {composite.name: composite for composite in selfbyoc.BUILTIN}
# Lanes with several columns each, bytes, rows of 513 words, columns that no line divides.
LARGE = (
    ("attention", "12x128x64-12x128x64-12x128x64"),
    ("attention", "12x512x64-12x512x64-12x512x64"),
    ("attention", "2x3x8-2x8x41-2x41x8-1x1x41"),
    ("attention", "2x197x40-2x197x40-2x197x40-1x197x197"),
    ("attention_of_heads", "1x128x12x32-1x128x12x32-1x128x12x32"),
    ("dense_gelu_dense", "45x96-384x96-384-96x384-96-45x96"),
    ("layer_norm_dense", "2x19x64-64-64-48x64-48"),
    ("layer_norm_dense_int8", "3x26-26-26-21x26"),
    ("layer_norm_dense_int8", "128x768-768-768-768x768"),
    ("batch_matmul", "many-columns"),
)
CROWDED = [
    pytest.param(name, case, id=f"{name}-{case.name}")
    for name, wanted in LARGE
    for case in KNOWN[name].cases
    if case.name == wanted and GENERATION in case.generations
]
HERE = [name for name in FAMILIES if any(GENERATION in c.generations for c in KNOWN[name].cases)]


def between(x, y):
    """A product between two sequences of elementwise ops and reductions."""
    power = op.exp(x)
    share = op.divide(power, op.sum(power, axis=-1, keepdims=True))
    scores = op.tanh(op.batch_matmul(share, y, transpose_b=True))
    return op.divide(scores, op.sum(op.abs(scores), axis=-1, keepdims=True))


def summed(x, y):
    return op.sum(op.softmax(op.batch_matmul(x, y, transpose_b=True)), axis=-1)


def gated(x, y):
    left = op.batch_matmul(x, y, transpose_b=True)
    right = op.batch_matmul(op.exp(x), y, transpose_b=True)
    return op.multiply(op.sigmoid(left), op.tanh(right))


def tokens(x):
    return op.softmax(op.sum(op.exp(x), axis=1))


def twice(x, y, z):
    hidden = op.relu(op.batch_matmul(op.softmax(x), y, transpose_b=True))
    return op.softmax(op.batch_matmul(hidden, z))


# Tails of rows, of columns, of terms; one of each; more than a block holds of none.
SIZES = {
    "tails": (between, {"x": (6, 11, 17), "y": (6, 13, 17)}),
    "33 and 7 keys": (between, {"x": (2, 37, 33), "y": (2, 7, 33)}),
    "whole": (between, {"x": (12, 64, 64), "y": (12, 64, 64)}),
    "one row": (between, {"x": (1, 1, 40), "y": (1, 65, 40)}),
    "one column": (between, {"x": (3, 5, 1), "y": (3, 1, 1)}),
    "no rows in the result": (summed, {"x": (3, 9, 16), "y": (3, 50, 16)}),
    "two products of one operand": (gated, {"x": (2, 19, 24), "y": (2, 21, 24)}),
    "one row each": (gated, {"x": (5, 1, 31), "y": (5, 100, 31)}),
    "a product of a product": (twice, {"x": (5, 2, 5), "y": (5, 16, 5), "z": (5, 16, 3)}),
    "sums down": (tokens, {"x": (5, 7, 33)}),
    "sums of one": (tokens, {"x": (1, 2, 1)}),
}


def level(program, target=CUDA, **shapes):
    """What is said of the schedule of a program, as one composite."""
    composite = Composite("chain", program)
    mod = selfbyoc.emit(program, shapes)
    (kernel,) = kernels(selfbyoc.partition_for_tefuse(mod, target=target, composites=[composite]))
    _, scheduled = kernel.schedule(make_target(target))
    return scheduled.level


def checked(composite, case, target=CUDA):
    """What is known of its kernels, by reading them."""
    (found,) = made(composite, case, make_target(target))
    return check(found.lowered)


def case_of(name, wanted):
    return next(case for case in KNOWN[name].cases if case.name == wanted)


@pytest.mark.parametrize("name", HERE)
def test_a_family_is_one_kernel(name):
    """Its first and its last case; no barrier that some threads miss, nothing beyond the limits."""
    cases = [c for c in KNOWN[name].cases if GENERATION in c.generations]
    for case in {case.name: case for case in (cases[0], cases[-1])}.values():
        found = checked(KNOWN[name], case)
        assert len(found.kernels) == 1
        assert (found.wrong, found.slow) == ([], [])


@pytest.mark.parametrize("name", SIZES)
def test_a_chain_is_one_kernel(name):
    program, shapes = SIZES[name]
    found = checked(Composite("chain", program), Case(program, **shapes))
    assert len(found.kernels) == 1
    assert (found.wrong, found.slow) == ([], [])


@needs_opencl
@pytest.mark.parametrize(
    "name", ["tails", "one row", "two products of one operand", "a product of a product"]
)
def test_numbers(name):
    program, shapes = SIZES[name]
    found = verified(Composite("chain", program), Case(program, **shapes), ["random"])
    assert found.counts == {"passed": 1}, str(found)


@pytest.mark.parametrize(("name", "case"), CROWDED)
def test_lanes_wait_for_no_bank(name, case):
    """Nowhere in a loop of these, whether a padding would help or not."""
    found = checked(KNOWN[name], case)
    (kernel,) = found.kernels
    assert [str(c) for c in kernel.conflicts if not c.is_store and c.times > 1] == []
    assert found.slow == []
    assert found.wrong == []


def test_without_layouts_lanes_wait(monkeypatch):
    """What is asserted above is due to `lay_out`, and `slow` would say so."""
    monkeypatch.setattr(block, "lay_out", lambda *_: None)
    found = checked(KNOWN["attention"], case_of("attention", "12x128x64-12x128x64-12x128x64"))
    assert any(text.startswith("load of ") for text in found.slow)
    assert any(text.startswith("store to ") for text in found.slow)


@pytest.mark.parametrize("most", [12 << 10, 20 << 10, 48 << 10])
def test_distances_take_what_a_block_has_left(most):
    target = {**CUDA, "max_shared_memory_per_block": most}
    found = checked(
        KNOWN["attention"], case_of("attention", "12x128x64-12x128x64-12x128x64"), target
    )
    (kernel,) = found.kernels
    assert most // 2 < kernel.shared <= most
    assert (found.wrong, found.slow) == ([], [])


def test_what_is_written_in_place_has_one_layout():
    """TVM keeps the scores and their exp in the same 20 KB; with two layouts it would keep both."""
    found = checked(KNOWN["attention"], case_of("attention", "12x128x64-12x128x64-12x128x64"))
    (kernel,) = found.kernels
    assert kernel.shared < 32 << 10


def test_facts_of_a_gpu():
    assert is_gpu(make_target(CUDA))
    assert not is_gpu(make_target("llvm"))
    assert gpu(make_target(CUDA)) == Gpu(32, 1024, 48 << 10, 64 << 10)
    known = gpu(make_target("opencl"))
    assert (known.warp, known.threads, known.shared_bytes) == (32, 256, 16 << 10)
    told = {"kind": "cuda", "arch": "sm_80", "max_shared_memory_per_block": 1 << 17,
            "max_threads_per_block": 512, "registers_per_block": 1 << 15}  # fmt: skip
    assert gpu(make_target(told)) == Gpu(32, 512, 1 << 17, 1 << 15)


def test_shared_memory_decides():
    """Less of it: smaller blocks; too little: a kernel for each stage, and why."""
    shapes = {"x": (12, 256, 64), "y": (12, 300, 64)}
    usual = level(between, **shapes)
    assert usual.plan.startswith("one kernel; thread blocks of 16 rows, ")
    assert usual.reason.endswith("; one kernel")
    smaller = level(between, {**CUDA, "max_shared_memory_per_block": 24 << 10}, **shapes)
    assert smaller.plan.startswith("one kernel; thread blocks of 8 rows, ")
    without = level(between, {**CUDA, "max_shared_memory_per_block": 4 << 10}, **shapes)
    assert without.plan.startswith("a kernel for each stage: one row takes ")
    assert "a thread block has 4096" in without.reason


def test_long_rows_are_not_kept():
    """Rows that shared memory cannot hold are read and computed again."""
    found = level(lambda x: op.softmax(x), x=(8, 20000))
    assert found.plan.startswith("one kernel; thread blocks of 1 rows, 1 x ")


def test_what_is_no_chain():
    pooled = level(lambda x: op.relu(op.max_pool2d(x, pool_size=2)), x=(1, 3, 8, 8))
    assert "one kernel" in pooled.plan
    windows = level(lambda x, w: op.relu(op.conv2d(x, w)), x=(1, 4, 9, 9), w=(8, 4, 3, 3))
    assert windows.plan.startswith("a kernel for each stage: conv2d reads windows of its argument;")


def test_weights_are_not_packed_for_a_gpu():
    composite = KNOWN["layer_norm_dense"]
    case = next(c for c in composite.cases if c.constants)
    given = {name: case.args[name] for name in case.constants}
    weights = {name: np.ones(shape, dtype) for name, (shape, dtype) in given.items()}
    mod = selfbyoc.emit(case.program, case.args, weights)
    for target, packs in ((CUDA, False), (None, True)):
        (kernel,) = kernels(
            selfbyoc.partition_for_tefuse(mod, target=target, composites=[composite])
        )
        assert bool(kernel.source.attrs.get(PACKED)) is packs
