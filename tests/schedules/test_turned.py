"""Copies that turn a tensor over: squares transposed in registers."""

import pytest
from default_schedules import free, scheduled
from harness import assert_close, cpus, run_case

from selfbyoc import Case, Composite, op
from selfbyoc.tir.transposed_tiles import TRANSPOSE

TURNED = {
    "an image as tokens": (lambda x: op.transpose(x, axes=(0, 2, 3, 1)), (2, 24, 7, 7)),
    "tokens as an image": (lambda x: op.transpose(x, axes=(0, 3, 1, 2)), (1, 14, 14, 40)),
    "a tail of rows": (lambda x: op.transpose(x, axes=(0, 2, 1)), (3, 197, 64)),
    "a tail of columns": (lambda x: op.transpose(x, axes=(1, 0)), (64, 151)),
    "fewer than a vector": (lambda x: op.transpose(x, axes=(0, 2, 1)), (5, 6, 20)),
    "windows": (
        lambda x: op.transpose(op.reshape(x, shape=(1, 16, 3, 7, 2, 7)), axes=(0, 2, 4, 3, 5, 1)),
        (1, 16, 21, 14),
    ),
    "scaled": (lambda x: op.multiply(op.transpose(x, axes=(1, 0)), 0.25), (33, 48)),
}
OTHERS = {
    "odd": (lambda x: op.transpose(x, axes=(1, 0)), (19, 23)),
    "rows": (lambda x: op.transpose(x, axes=(0, 2, 1, 3)), (1, 19, 4, 16)),
    "narrow": (lambda x: op.transpose(x, axes=(1, 0)), (3, 64)),
}


@pytest.mark.parametrize("target", cpus(None, "llvm -mcpu=haswell", "llvm -mcpu=nehalem"))
@pytest.mark.parametrize("name", sorted({**TURNED, **OTHERS}))
def test_right(name, target):
    program, shape = {**TURNED, **OTHERS}[name]
    run = run_case(Composite("turned", free(program)), Case(program, x=shape), target=target)
    assert run.counts == {"turned": 1}
    assert_close(run)


@pytest.mark.parametrize("name", sorted(TURNED))
def test_in_squares(name):
    program, shape = TURNED[name]
    assert TRANSPOSE in str(scheduled(program, x=shape))


@pytest.mark.parametrize("name", sorted(OTHERS))
def test_others_stay_rows(name):
    program, shape = OTHERS[name]
    assert TRANSPOSE not in str(scheduled(program, x=shape))


def test_what_is_added_along_an_axis_is_no_copy():
    def program(x, w):
        return op.add(op.transpose(x, axes=(1, 0)), w)

    assert TRANSPOSE not in str(scheduled(program, x=(16, 32), w=(16,)))
