"""What a kernel says of the symbols beside its own is so at the sizes that tell formulas apart."""

import pytest

from selfbyoc.codegen.symbolic.learn import Example, learnt
from selfbyoc.codegen.symbolic.maker import OTHERS
from selfbyoc.codegen.symbolic.others import of_others_too
from selfbyoc.tvm import te


def maker(tile, beside):
    """Kernels of ceil(n / tile) tiles of m rows, which have another extent, too."""

    def make(sizes):
        extents = (tile, beside, -(-sizes["n"] // tile), sizes["m"])
        x = te.placeholder(extents, "float32", name="x")
        return Example(sizes, te.create_prim_func([x, te.compute(extents, lambda *i: x(*i))]))

    return make


def examples(make):
    return [make({"n": other, "m": 20 + number}) for number, other in enumerate(OTHERS)]


@pytest.mark.parametrize(("tile", "beside"), [(24, 21), (48, 40), (32, 31), (16, 12), (16, 5)])
def test_a_formula_that_fits_the_usual_sizes_alone_is_mended(tile, beside):
    """ceil(n / 21) is ceil(n / 24) at all of them."""
    make = maker(tile, beside)
    found = of_others_too(learnt(examples(make)), make, {"n": None})
    assert found is not None
    for n in range(2, 200):
        assert found.says(make({"n": n, "m": 33})), n


def test_what_fits_no_formula_is_none():
    whole = maker(24, 21)

    def make(sizes):
        n = sizes["n"]
        told = sizes if n in OTHERS else {**sizes, "n": n + 24 * (n * 37 % 11)}
        return Example(sizes, whole(told).func)

    assert of_others_too(learnt(examples(make)), make, {"n": None}) is None


def test_a_symbol_that_is_one_is_asked_nothing():
    found = learnt(examples(maker(24, 21)))
    assert of_others_too(found, lambda sizes: pytest.fail("made"), {"n": 1}) is found
