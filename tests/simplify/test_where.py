"""Rewritings that look at no op of a network that has none they are about."""

import numpy as np
import pytest

from selfbyoc import emit, op
from selfbyoc.ir.generation import ops_in
from selfbyoc.partition.generation import ir
from selfbyoc.simplify.where import where

W = np.ones((17, 33), "float32")


def prepared():
    shapes = {"x": ((5, 33), "float32"), "w": (W.shape, "float32")}
    return ir.prepare(emit(lambda x, w: op.relu(op.dense(x, w)), shapes, {"w": W}), {})


def asked(ops):
    found = []
    rewriting = lambda made, to: found.append(made.name)  # noqa: E731
    mod = prepared()
    assert where(ops, lambda: rewriting)(mod) is mod
    return found


def test_the_names_are_those_that_a_rewriting_sees():
    every = asked(ops_in(prepared()))
    assert set(every) == ops_in(prepared())
    assert "nn.relu" in every


@pytest.mark.parametrize("ops", [("nn.relu",), ("relu",), ("nn.pad", "relu")])
def test_by_name_or_kind(ops):
    assert len(asked(ops)) == len(asked(ops_in(prepared())))


def test_nobody_is_asked_of_others():
    assert asked(("nn.pad", "dequantize")) == []
