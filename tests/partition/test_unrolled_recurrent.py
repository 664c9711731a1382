"""Recurrent networks, unrolled by their importers: equal steps are one kernel, and nothing that
partitions or builds them grows faster than they do.
"""

import numpy as np
import pytest

import selfbyoc
from selfbyoc import op, partition_for_tefuse, report
from selfbyoc.ir import canonical
from selfbyoc.ir.emit import emit
from selfbyoc.ir.generation import ir
from selfbyoc.language.case import Case

HIDDEN = 24


def steps(kind, count):
    """`count` steps of a GRU's or an LSTM's arithmetic, each spelled out, the weights shared."""

    def program(x, h, w, r, b):
        c = h
        for _ in range(count):
            gates = op.add(op.dense(x, w), op.bias_add(op.dense(h, r), b, axis=1))
            if kind == "gru":
                z = op.sigmoid(gates)
                n = op.tanh(op.add(gates, op.multiply(z, h)))
                h = op.add(op.multiply(z, op.subtract(h, n)), n)
            else:
                i = op.sigmoid(gates)
                c = op.add(op.multiply(i, c), op.multiply(i, op.tanh(gates)))
                h = op.multiply(i, op.tanh(c))
        return h

    square = (HIDDEN, HIDDEN)
    return Case(program, name=kind, x=(1, HIDDEN), h=(1, HIDDEN), w=square, r=square, b=(HIDDEN,))


def arguments(case):
    rng = np.random.default_rng(3)
    return {
        name: (0.3 * rng.standard_normal(shape)).astype(dtype)
        for name, (shape, dtype) in case.args.items()
    }


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def expected(kind, count, x, h, w, r, b):
    c = h
    for _ in range(count):
        gates = x @ w.T + h @ r.T + b
        z = sigmoid(gates)
        if kind == "gru":
            n = np.tanh(gates + z * h)
            h = z * (h - n) + n
        else:
            c = z * c + z * np.tanh(gates)
            h = z * np.tanh(c)
    return h


@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_many_steps(kind):
    case = steps(kind, 9)
    args = arguments(case)
    constants = {name: args[name] for name in "wrb"}
    parted = partition_for_tefuse(emit(case.program, case.args, constants))
    assert report(parted).counts == {"dense": 18}
    symbols = {record.symbol for record in report(parted).matched}
    # The first step and the last have other neighbours; those between are equal.
    assert len(symbols) <= 5, "equal steps are one kernel"
    (found,) = selfbyoc.build(parted)(args["x"], args["h"])
    wide = {name: a.astype("float64") for name, a in args.items()}
    np.testing.assert_allclose(found, expected(kind, 9, **wide), rtol=1e-4, atol=1e-5)


def test_reading_does_not_grow_faster_than_the_model(monkeypatch):
    asked = []
    real = canonical._read

    def counting(rule, rewriter, call):
        asked[-1] += 1
        return real(rule, rewriter, call)

    monkeypatch.setattr(canonical, "_read", counting)
    for count in (4, 16):
        case = steps("gru", count)
        asked.append(0)
        ir.read(emit(case.program, case.args)["main"])
    assert asked[1] <= 4.5 * asked[0]
