"""Bytes that become words: one load and shuffles, only where all of a row is read."""

import numpy as np
import pytest

from selfbyoc.schedules.kernels.words import word_of
from selfbyoc.tir.lowering import finished, machine_code
from selfbyoc.tvm import Schedule, get_block, make_target, module_source, te, tvm

TARGET = make_target("llvm -mcpu=haswell")


def built(apart, taken, dtype="uint8"):
    """Words of so many bytes of each group of `apart`; -> assembly, and the function."""
    x = te.placeholder((5, 16 * apart), dtype, "x")

    def word(i, k):
        return word_of([x[i, k * apart + n].astype("int32") - 3 for n in range(taken)])

    y = te.compute((5, 16), word, name="y")
    sch = Schedule(te.create_prim_func([x, y]))
    _, last = sch.get_loops(get_block(sch, "y"))
    sch.vectorize(sch.split(last, [None, 8])[1])
    func = finished(sch.mod["main"].with_attr("global_symbol", "f"), TARGET)
    return machine_code(func, "f", TARGET)


def words(x, apart, taken):
    levels = x.reshape(5, 16, apart).astype("int64")[:, :, :taken] - 3
    bits = 32 // taken
    found = sum((levels[..., n] & (1 << bits) - 1) << bits * n for n in range(taken))
    return found.astype("uint32").view("int32")


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize(("apart", "taken"), [(2, 2), (4, 4), (4, 2)])
def test_words_of_rows(apart, taken, dtype):
    module = built(apart, taken, dtype)
    is_whole = apart == taken
    assert ("pinsrb" not in module_source(module, "asm")) == is_whole
    x = np.random.default_rng(0).integers(0, 127, (5, 16 * apart)).astype(dtype)
    given = [_array(x), _array(np.zeros((5, 16), "int32"))]
    module["f"](*given)
    assert np.array_equal(given[1].numpy(), words(x, apart, taken))


def _array(x):
    make = getattr(tvm.runtime, "tensor", None) or tvm.nd.array
    return make(x)
