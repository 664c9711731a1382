"""Products of matrices of which two extents are open, each by itself: rows and columns, rows and
what is summed. One kernel takes all of them; copies stand for the rows that a tile has too many.
"""

import numpy as np
import pytest

import selfbyoc
from selfbyoc.ir.emit import emit
from selfbyoc.language.pattern import op
from selfbyoc.runtime.tolerance import first_wrong
from selfbyoc.tvm import GENERATION, tir

BATCH, DEPTH, COLUMNS = 3, 20, 24
SIZES = ((1, 1), (1, 9), (2, 17), (3, 2), (8, 16), (9, 33), (17, 130), (64, 5), (100, 64))


def turned(x, y):
    return op.batch_matmul(x, y, transpose_b=True)


def masked(x, y, mask):
    return op.add(op.multiply(turned(x, y), 0.25), mask)


def plain(x, y):
    return op.batch_matmul(x, y)


def over_rows(x, y):
    return op.relu(op.batch_matmul(x, y, transpose_a=True))


def shapes(name, n, p):
    """Of the arguments."""
    return {
        "turned": {"x": (BATCH, n, DEPTH), "y": (BATCH, p, DEPTH)},
        "masked": {"x": (BATCH, n, DEPTH), "y": (BATCH, p, DEPTH), "mask": (BATCH, 1, p)},
        "plain": {"x": (BATCH, n, p), "y": (BATCH, p, COLUMNS)},
        "over_rows": {"x": (BATCH, p, n), "y": (BATCH, p, COLUMNS)},
    }[name]


PROGRAMS = {"turned": turned, "masked": masked, "plain": plain, "over_rows": over_rows}


def model(name):
    if GENERATION == "relax":
        n, p = (tir.Var(size, "int64") for size in ("n", "p"))
        return emit(PROGRAMS[name], shapes(name, n, p))
    n, p = tir.Any(), tir.Any()
    places = shapes(name, n, p)
    return selfbyoc.name_sizes(emit(PROGRAMS[name], places), {
        arg: {axis: "n" if e is n else "p" for axis, e in enumerate(shape) if e is n or e is p}
        for arg, shape in places.items()
    })  # fmt: skip


def expected(name, x, y, mask=0.0):
    x, y = x.astype("float64"), y.astype("float64")
    if name in ("turned", "masked"):
        return x @ y.swapaxes(1, 2) * (0.25 if name == "masked" else 1) + mask
    return x @ y if name == "plain" else np.maximum(x.swapaxes(1, 2) @ y, 0)


def check(name, target):
    found = selfbyoc.build(model(name), target)
    assert found.report.counts == {"batch_matmul": 1}
    rng = np.random.default_rng(0)
    for n, p in SIZES:
        given = {a: rng.standard_normal(s, "float32") for a, s in shapes(name, n, p).items()}
        (result,) = found(**given)
        wanted = expected(name, **given).astype("float32")
        assert first_wrong(result, wanted, "float32", max(p, DEPTH)) is None, (n, p)


@pytest.mark.parametrize("name", ["turned", "plain"])
def test_one_kernel_of_two_sizes(name):
    check(name, None)


@pytest.mark.slow
@pytest.mark.parametrize("target", [None, "llvm -mcpu=haswell", "llvm"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_on_other_targets(name, target):
    check(name, target)
