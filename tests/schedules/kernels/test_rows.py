"""What the composites over rows (dense, layer_norm, softmax) refuse, and odd numbers of rows."""

import operator
from types import SimpleNamespace

import numpy as np
import pytest

import selfbyoc
from selfbyoc import BUILTIN, op
from selfbyoc.ir.emit import emit
from selfbyoc.schedules.kernels.rows import layout
from selfbyoc.schedules.kernels.rows.layout import numbered, rows_in_tiles
from selfbyoc.tvm import GENERATION

X = {"x": ((2, 5, 7, 6), "float32")}
AFFINE = {"gamma": ((6,), "float32"), "beta": ((6,), "float32")}


def refusals(program, types):
    """-> the reasons; nothing may have matched."""
    report = selfbyoc.report(
        selfbyoc.partition_for_tefuse(emit(program, types), composites=BUILTIN)
    )
    assert report.counts == {}
    return " | ".join(r.reason for r in report.records if r.status == "refused")


@pytest.mark.parametrize("axis", [1, -2])
def test_softmax_over_another_axis(axis):
    assert "not the last" in refusals(lambda x: op.softmax(x, axis=axis), X)


def test_rows_of_another_dtype():
    types = {"x": ((5, 6), "float64")}
    assert "only float32" in refusals(lambda x: op.softmax(x), types)


def test_softmax_of_one_row():
    x = np.random.default_rng(0).standard_normal(7).astype("float32")
    mod = emit(lambda x: op.softmax(x), {"x": x.shape})
    assert "softmax of one row" in refusals(lambda x: op.softmax(x), {"x": (x.shape, "float32")})
    power = np.exp(x - x.max())
    np.testing.assert_allclose(selfbyoc.build(mod)(x)[0], power / power.sum(), rtol=1e-6)


def test_layer_norm_over_another_axis():
    types = X | {name: ((7,), "float32") for name in AFFINE}
    found = refusals(lambda x, gamma, beta: op.layer_norm(x, gamma, beta, axis=2), types)
    assert "layer_norm is over axis 2, not the last" in found


@pytest.mark.skipif(GENERATION == "relay", reason="not read back: Relay has no such op")
def test_rms_norm_over_another_axis():
    types = X | {"gamma": ((7,), "float32")}
    found = refusals(lambda x, gamma: op.rms_norm(x, gamma, axis=2), types)
    assert "rms_norm is over axis 2, not the last" in found


def test_a_bias_along_the_rows():
    """No bias of the pattern; it joins as any other op does."""
    types = {"x": ((2, 5, 7, 6), "float32"), "w": ((9, 6), "float32"), "b": ((5,), "float32")}
    mod = emit(lambda x, w, b: op.relu(op.bias_add(op.dense(x, w), b, axis=1)), types)
    report = selfbyoc.report(selfbyoc.partition_for_tefuse(mod))
    assert report.counts == {"dense": 1}
    (record,) = report.matched
    assert {name.partition("_")[0] for name in record.ops} >= {"dense", "relu"}


@pytest.mark.parametrize("height", [1, 4, 6, 8])
@pytest.mark.parametrize("lead", [(1,), (7,), (9,), (3, 5), (2, 8), (2, 33), (2, 3, 1), (1, 1, 13)])
def test_every_row_has_one_place_in_the_tiles(monkeypatch, lead, height):
    numbers = SimpleNamespace(Min=min, floordiv=operator.floordiv, floormod=operator.mod)
    monkeypatch.setattr(layout, "tir", numbers)
    rows = rows_in_tiles(numbered(lead, height), height, 32)
    places = set()
    for at in np.ndindex(*lead):
        place = rows.where(at)
        *outer, row = place
        assert all(i < extent for i, extent in zip(outer, rows.tiles, strict=True))
        assert row < rows.height == height
        assert rows.of(place) == at
        places.add(place)
    assert len(places) == np.prod(lead)


@pytest.mark.parametrize("lead", [(1,), (9,), (3, 5), (2, 33), (2, 3, 1)])
@pytest.mark.parametrize("units", [1, 16, 31])
def test_dense_of_any_number_of_rows(lead, units):
    rng = np.random.default_rng(1)
    x = rng.standard_normal((*lead, 13)).astype("float32")
    w = rng.standard_normal((units, 13)).astype("float32")
    types = {"x": (x.shape, "float32"), "w": (w.shape, "float32")}
    parted = selfbyoc.partition_for_tefuse(emit(lambda x, w: op.dense(x, w), types))
    assert selfbyoc.report(parted).counts == {"dense": 1}
    np.testing.assert_allclose(selfbyoc.build(parted)(x, w)[0], x @ w.T, rtol=1e-5, atol=1e-5)


def test_a_residual_of_another_shape_joins_by_broadcasting():
    types = {"x": ((7, 6), "float32"), "w": ((9, 6), "float32"), "r": ((7, 1), "float32")}
    parted = selfbyoc.partition_for_tefuse(emit(lambda x, w, r: op.add(op.dense(x, w), r), types))
    (record,) = selfbyoc.report(parted).matched
    assert (record.composite, len(record.ops)) == ("dense", 2)
    rng = np.random.default_rng(0)
    x, w, r = (rng.standard_normal(shape).astype("float32") for shape, _ in types.values())
    np.testing.assert_allclose(
        selfbyoc.build(parted)(x, w, r)[0], x @ w.T + r, rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("rows", [*range(1, 140), 197, 513])
@pytest.mark.parametrize("height", [4, 6, 8])
def test_many_tiles_come_in_groups(rows, height):
    """A group of tiles shares a piece of the weight; few of them are copies."""
    most = 14
    (tiles,) = rows_in_tiles(numbered((rows,), height), height, most).tiles
    assert tiles * height >= rows
    assert tiles * height < rows * 1.1 + height
    if tiles > most:
        assert layout.divisor(tiles, most) > most // 2
