"""The schedule of what has none: right for any stacked function, parallel and in vectors."""

import pytest
from default_schedules import free, scheduled, stacked
from harness import assert_close, cpus, run_case

from selfbyoc import Case, Composite, op
from selfbyoc.schedules.steps.blocks import facts
from selfbyoc.schedules.steps.loops import PARTITION
from selfbyoc.tvm import Schedule, tvm, walk

PARALLEL, VECTORIZED, UNROLLED = 1, 2, 3  # tir.ForKind


def loops(func):
    found = []
    walk(func.body, lambda n: found.extend([n] if type(n).__name__ == "For" else []))
    return found


def kinds(program, **shapes):
    return [int(loop.kind) for loop in loops(scheduled(program, **shapes))]


CASES = {
    "conv2d": (
        lambda x, w: op.relu(op.conv2d(x, w, padding=1)),
        {"x": (2, 5, 17, 13), "w": (19, 5, 3, 3)},
    ),
    "strided": (
        lambda x, w: op.conv2d(x, w, strides=(2, 3), padding=(0, 1, 2, 3)),
        {"x": (1, 4, 31, 23), "w": (6, 4, 3, 5)},
    ),
    "dense": (lambda x, w: op.relu(op.dense(x, w)), {"x": (7, 33), "w": (17, 33)}),
    "matmul": (lambda x, w: op.batch_matmul(x, w), {"x": (3, 13, 29), "w": (3, 29, 31)}),
    "softmax": (lambda x: op.softmax(x), {"x": (5, 3, 37)}),
    "row sums": (lambda x: op.sum(x, axis=-1), {"x": (9, 64)}),
    "odd row sums": (lambda x: op.sum(x, axis=-1), {"x": (9, 61)}),
    "rows with a tail": (lambda x: op.max(x, axis=-1), {"x": (7, 197)}),
    "image means with a tail": (lambda x: op.mean(x, axis=(2, 3)), {"x": (2, 5, 7, 9)}),
    "tiles with a tail": (lambda x, w: op.batch_matmul(x, w), {"x": (3, 21, 32), "w": (3, 32, 49)}),
    "groups": (
        lambda x, w: op.conv2d(x, w, padding=1, groups=4),
        {"x": (1, 24, 11, 28), "w": (32, 6, 3, 3)},
    ),
    "images and channels": (
        lambda x, w: op.relu(op.multiply(x, w)),
        {"x": (2, 5, 7, 7), "w": (1, 5, 1, 1)},
    ),
    "unit axes": (lambda x, w: op.add(x, w), {"x": (1, 65, 1, 1), "w": (3, 65, 1, 1)}),
    "whole sum": (lambda x: op.sum(x), {"x": (11, 13)}),
    "image means": (lambda x: op.global_avg_pool2d(x), {"x": (2, 24, 7, 7)}),
    "column sums": (lambda x: op.sum(x, axis=0), {"x": (33, 65)}),
    "elementwise": (lambda x: op.relu(op.exp(x)), {"x": (3, 5, 7)}),
    "two readers": (lambda x: op.add(op.exp(x), op.sqrt(op.exp(x))), {"x": (4, 33)}),
    "copies": (
        lambda x, w: op.concatenate([op.transpose(x, axes=(1, 0)), op.relu(w)], axis=1),
        {"x": (9, 5), "w": (5, 17)},
    ),
    "joined rows": (
        lambda x, w: op.concatenate([x, w, x], axis=2),
        {"x": (3, 5, 37), "w": (3, 5, 16)},
    ),
    "one element": (lambda x: op.relu(x), {"x": (1,)}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("target", cpus(None, "llvm -mcpu=haswell", "llvm"))
def test_right(name, target):
    program, shapes = CASES[name]
    plain = Composite("plain", free(program))
    run = run_case(plain, Case(program, **shapes), target=target)
    assert run.counts == {"plain": 1}
    assert_close(run)


def test_joined_rows_are_copied_part_by_part():
    """One loop for each part, not one with a test for each element."""

    def parted(axis):
        shapes = {"x": (64, 320), "w": (64, 320)}
        func = scheduled(lambda x, w: op.concatenate([x, w], axis=axis), **shapes)
        return {int(n.extent): PARTITION in dict(n.annotations) for n in loops(func)}

    assert parted(1) == {64: False, 640: True}
    assert not any(parted(0).values())  # whole rows of either, in vectors


def test_a_convolution_is_parallel_unrolled_and_in_vectors():
    found = kinds(lambda x, w: op.relu(op.conv2d(x, w)), x=(1, 64, 56, 56), w=(64, 64, 3, 3))
    assert {PARALLEL, VECTORIZED, UNROLLED} <= set(found)


def test_an_elementwise_chain_is_one_parallel_loop_of_vectors():
    found = kinds(lambda x: op.relu(op.add(x, x)), x=(64, 1024))
    assert found.count(PARALLEL) == found.count(VECTORIZED) == 1


def test_little_work_stays_on_one_core():
    assert PARALLEL not in kinds(lambda x: op.relu(x), x=(8, 16))
    assert PARALLEL not in kinds(lambda x, w: op.conv2d(x, w), x=(1, 2, 5, 5), w=(2, 2, 3, 3))


def test_a_cuda_kernel_binds_its_threads():
    func = scheduled(
        lambda x, w: op.relu(op.conv2d(x, w)),
        {"kind": "cuda", "arch": "sm_80"},
        x=(1, 4, 9, 9),
        w=(8, 4, 3, 3),
    )
    tags = {str(n.thread_binding.thread_tag) for n in loops(func) if n.thread_binding is not None}
    assert tags == {"blockIdx.x", "threadIdx.x"}


def first_reduction(program, **shapes):
    func = stacked(program, **shapes).func.with_attr("global_symbol", "main")
    sch = Schedule(tvm.IRModule({"main": func}))
    return next(b for b in facts(sch) if b.reduction), sch


def test_rows_are_told_from_columns():
    """A reduction over whole trailing dimensions is contiguous, one over leading ones is not."""
    rows, _rows = first_reduction(lambda x: op.sum(x, axis=(2, 3)), x=(2, 3, 7, 7))
    assert rows.reduces_rows()
    columns, _columns = first_reduction(lambda x: op.sum(x, axis=0), x=(5, 9))
    assert not columns.reduces_rows()


@pytest.mark.parametrize("sections", [2, (3,)])
def test_parts_of_a_tensor(sections):
    """A gated unit: two parts of one product, in one kernel."""

    def gated(x, w):
        parts = op.split(op.dense(x, w), indices_or_sections=sections, axis=1)
        gate = op.sum(op.sigmoid(parts[1]), axis=1, keepdims=True)
        return op.multiply(parts[0], gate)

    composite = Composite("gated", gated)
    run = run_case(composite, Case(gated, x=(5, 17), w=(14, 17)))
    assert run.counts == {"gated": 1}
    assert_close(run)
