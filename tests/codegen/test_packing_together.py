"""What packs weights is compiled in few modules; where one does not compile, one by one."""

from collections import deque

import numpy as np
import pytest

import selfbyoc
from selfbyoc import emit, op
from selfbyoc.codegen import pack
from selfbyoc.errors import FallbackWarning, LoweringError

RNG = np.random.default_rng(47)
SHAPES = {"v": (40, 36), "w": (33, 40)}
GIVEN = {name: RNG.standard_normal(shape, np.float32) for name, shape in SHAPES.items()}
X = RNG.standard_normal((5, 36), np.float32)


@pytest.fixture
def counted(monkeypatch):
    """How many functions each module has; nothing is known from before."""
    found, usual = [], pack.packing_code
    monkeypatch.setattr(pack, "_modules", deque(maxlen=8))

    def counting(functions, level):
        found.append(len(functions))
        return usual(functions, level)

    monkeypatch.setattr(pack, "packing_code", counting)
    return found


def partitioned():
    shapes = {n: (array.shape, "float32") for n, array in {"x": X, **GIVEN}.items()}
    mod = emit(lambda x, v, w: op.dense(op.tanh(op.dense(x, v)), w), shapes, GIVEN)
    return selfbyoc.partition_for_tefuse(mod)


def right(mod):
    found = selfbyoc.build(mod)(X)[0]
    expected = np.tanh(X @ GIVEN["v"].T) @ GIVEN["w"].T
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_one_module(counted):
    mod = partitioned()
    assert counted == [2]
    right(mod)
    partitioned()
    assert counted == [2]  # they are known


def test_one_by_one_where_they_fail_together(counted, monkeypatch):
    usual = pack.packing_code

    def failing(functions, level):
        module = usual(functions, level)
        if len(functions) > 1:
            raise RuntimeError("no")
        return module

    monkeypatch.setattr(pack, "packing_code", failing)
    mod = partitioned()
    assert counted == [2, 1, 1]
    right(mod)


def test_what_cannot_be_compiled_stays_as_it_is(counted, monkeypatch):
    def failing(functions, level):
        raise LoweringError("no")

    monkeypatch.setattr(pack, "packing_code", failing)
    with pytest.warns(FallbackWarning, match="its weights are not packed: .* failed: no"):
        mod = partitioned()
    assert selfbyoc.report(mod).counts == {"dense": 2}
    right(mod)
