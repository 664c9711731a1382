"""Rows of bytes that a loop copies, as vectors."""

import numpy as np
import pytest

from selfbyoc.schedules.steps.loops import PARTITION
from selfbyoc.tir.lowering import finished, machine_code
from selfbyoc.tvm import Schedule, get_block, get_func, make_target, module_source, te, tensor, tir

TARGET = make_target("llvm -mcpu=haswell")
ROWS = 5


def code_of(func):
    return machine_code(finished(func, TARGET), "main", TARGET)


def padded(width, dtype, shift):
    """An image with a row and a column of nines around it, in a loop over each row's columns."""
    x = te.placeholder((ROWS, width), dtype, "x")

    def element(row, column):
        inside = tir.all(row >= 1, row <= ROWS, column >= 1, column <= width)
        value = x(row - 1, column - 1)
        value = (value.astype("int32") + shift).astype("uint8") if shift else value
        return tir.if_then_else(inside, value, tir.const(9, "uint8" if shift else dtype))

    y = te.compute((ROWS + 2, width + 2), element, name="y")
    sch = Schedule(te.create_prim_func([x, y]))
    _, column = sch.get_loops(get_block(sch, "y"))
    sch.annotate(column, PARTITION, 1)
    return sch.mod["main"].with_attr("global_symbol", "main")


@pytest.mark.parametrize(("dtype", "shift"), [("uint8", 0), ("int8", 0), ("int8", 128)])
@pytest.mark.parametrize("width", [1, 3, 4, 7, 14, 31, 32, 33, 57, 200])
def test_copies_are_what_they_were(width, dtype, shift):
    rng = np.random.default_rng(width)
    x = rng.integers(-100, 100, (ROWS, width)).astype(dtype)
    inner = (x.astype("int32") + shift).astype("uint8") if shift else x
    wanted = np.full((ROWS + 2, width + 2), 9, inner.dtype)
    wanted[1:-1, 1:-1] = inner
    found = tensor(np.zeros_like(wanted))
    get_func(code_of(padded(width, dtype, shift)), "main")(tensor(x), found)
    np.testing.assert_array_equal(found.numpy(), wanted)


def test_no_byte_of_a_row_is_moved_by_itself():
    code = module_source(code_of(padded(57, "uint8", 0)), "asm")
    assert code.count("movzbl") < 20
    assert "ymm" in code
