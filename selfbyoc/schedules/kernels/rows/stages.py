"""Stages that normalise rows: layer_norm and softmax over the last axis.

A row is reduced in two steps, into `lanes` partial results and then into one: the first runs in
vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...._tvm import te, tir
from ....compute import mathfn
from ...steps.blocks import divisor

LANES = 16  # partial results of a row: one AVX-512 vector of float32, two AVX2 ones

Tensor = Any
Read = Callable[..., Any]  # (row index ..., k) -> element


def _reduced(
    read: Read, rows: tuple[int, ...], count: int, how: Callable[..., Any], name: str
) -> Tensor:
    """[rows]: `how` (te.sum, te.max) over the elements of each row."""
    lanes = divisor(count, LANES)
    k = te.reduce_axis((0, count // lanes), name="k")
    lane = te.reduce_axis((0, lanes), name="lane")
    partial = te.compute(
        (*rows, lanes),
        lambda *i: how(read(*i[:-1], k * lanes + i[-1]), axis=k),
        name=f"{name}_lanes",
    )
    return te.compute(rows, lambda *i: how(partial(*i, lane), axis=lane), name=name)


def layer_norm(
    read: Read, gamma: Tensor, beta: Tensor, rows: tuple[int, ...], count: int, epsilon: float
) -> Read:
    """-> the element at (row ..., k). Two passes: a one-pass variance loses float32's digits."""

    def f(value: float) -> Any:
        return tir.const(value, "float32")

    total = _reduced(read, rows, count, te.sum, "total")
    mean = te.compute(rows, lambda *i: total(*i) * f(1 / count), name="mean")

    def squared(*i: Any) -> Any:
        centred = read(*i) - mean(*i[:-1])
        return centred * centred

    spread = _reduced(squared, rows, count, te.sum, "spread")
    factor = te.compute(
        rows, lambda *i: f(1.0) / te.sqrt(spread(*i) * f(1 / count) + f(epsilon)), name="factor"
    )
    return lambda *i: (read(*i) - mean(*i[:-1])) * factor(*i[:-1]) * gamma(i[-1]) + beta(i[-1])


# Stages before the normalised rows, each after all of its readers.
LAYER_NORM_STAGES = ("factor", "spread", "spread_lanes", "mean", "total", "total_lanes")
SOFTMAX_STAGES = ("inverse", "total", "total_lanes", "power", "peak", "peak_lanes")


def softmax(read: Read, rows: tuple[int, ...], count: int) -> Read:
    """-> the element at (row ..., k) of the softmax of each row."""
    peak = _reduced(read, rows, count, te.max, "peak")
    power = te.compute(
        (*rows, count), lambda *i: mathfn.exp_of_difference(read(*i) - peak(*i[:-1])), name="power"
    )
    total = _reduced(power, rows, count, te.sum, "total")
    inverse = te.compute(rows, lambda *i: tir.const(1.0, "float32") / total(*i), name="inverse")
    return lambda *i: power(*i) * inverse(*i[:-1])
