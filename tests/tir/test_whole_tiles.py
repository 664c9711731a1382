"""Loops over whole tiles of a symbolic number of rows are apart from those over the last one."""

import numpy as np
import pytest
from symbolic_programs import UNKNOWN, N, named

import selfbyoc
from selfbyoc.ir.emit import emit
from selfbyoc.language.pattern import op
from selfbyoc.tir import lowering
from selfbyoc.tir.whole_tiles import with_whole_tiles

SHAPES = {"x": (N, 33), "weight": (48, 33)}


@pytest.fixture
def changed(monkeypatch):
    """For each function that is lowered: whether it has such loops."""
    seen = []

    def noted(func):
        made = with_whole_tiles(func)
        seen.append(made is not func)
        return made

    monkeypatch.setattr(lowering, "with_whole_tiles", noted)
    return seen


def built(rows):
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((48, 33)).astype("float32")
    mod = emit(
        lambda x, weight: op.relu(op.dense(x, weight)), {"x": (rows, 33)}, {"weight": weight}
    )
    library = selfbyoc.build(mod if rows == 50 else named(mod, SHAPES), cache=False)
    assert library.report.counts == {"dense": 1}
    return library, weight


def test_of_symbolic_rows(changed):
    library, weight = built(UNKNOWN)
    assert any(changed)
    for rows in (1, 7, 8, 9, 47, 48, 49, 50, 100):
        x = np.random.default_rng(rows).standard_normal((rows, 33)).astype("float32")
        np.testing.assert_allclose(library(x)[0], np.maximum(x @ weight.T, 0), 1e-5, 1e-5)


def test_known_rows_stay(changed):
    built(50)
    assert changed
    assert not any(changed)
