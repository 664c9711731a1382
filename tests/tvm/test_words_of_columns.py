"""Words of neighbouring bytes: by shuffles of each kind, and put together byte by byte."""

import numpy as np
import pytest

from selfbyoc.tir.lowering import machine_code
from selfbyoc.tvm import Schedule, get_block, get_func, make_target, te, tensor
from selfbyoc.tvm.columns import SPARE, columns, with_columns_at_once

TARGET = make_target("llvm")
WORDS = 48


def words(lanes, step, known, length):
    """Of which the bytes after the first `known` are that again, before nothing is sure of them."""
    size = WORDS * step + SPARE + length
    x = te.placeholder((size,), "uint8", "x")

    def element(at):
        places = [at * step + min(i, known - 1) for i in range(length)]
        return columns([x(place) for place in places], x(size - 1))

    y = te.compute((WORDS,), element, name="y")
    sch = Schedule(te.create_prim_func([x, y]))
    _, lane = sch.split(sch.get_loops(get_block(sch, "y"))[0], [None, lanes])
    sch.vectorize(lane)
    return sch.mod["main"].with_attr("global_symbol", "main")


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize(("known", "length"), [(4, 4), (3, 4), (1, 4), (2, 2), (1, 2)])
@pytest.mark.parametrize("step", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("lanes", [1, 4, 8, 16])
def test_words_hold_the_bytes(lanes, step, known, length, at_once):
    func = words(lanes, step, known, length)
    func = with_columns_at_once(func) if at_once else func
    size = WORDS * step + SPARE + length
    x = np.random.default_rng(lanes + step).integers(0, 256, size)
    found = tensor(np.zeros(WORDS, "int32"))
    get_func(machine_code(func, "main", TARGET), "main")(tensor(x.astype("uint8")), found)
    width = 32 // length
    for i in range(known):
        held = (found.numpy().astype("int64") >> (width * i)) & ((1 << width) - 1)
        np.testing.assert_array_equal(held, x[np.arange(WORDS) * step + i])
