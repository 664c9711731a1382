"""Activations in ONNX models, in the spellings of several exporters."""

from __future__ import annotations

import math

from .onnx_place import Place


def relu(p: Place) -> str:
    """Relu, or a limit from below."""
    (x,), how = p.inputs, p.rng.randrange(4)
    if how == 0:
        return p.w.op("Max", x, p.number(0))
    return p.w.op("Clip", x, p.number(0)) if how == 1 else p.w.op("Relu", x)


def clip(p: Place) -> str:
    """Clip, or Min and Max in either order."""
    (x,), low, high = p.inputs, p.attrs["a_min"], p.attrs["a_max"]
    if low <= high and p.rng.random() < 0.5:
        return p.w.op("Clip", x, p.number(low), p.number(high))
    if low <= high and p.rng.random() < 0.5:
        return p.w.op("Min", p.w.op("Max", x, p.number(low)), p.number(high))
    return p.w.op("Max", p.w.op("Min", x, p.number(high)), p.number(low))


def gelu(p: Place) -> str:
    """By erf, in several orders."""
    (x,), op = p.inputs, p.w.op
    if p.rng.random() < 0.5:
        inner = op("Erf", op("Div", x, p.number(math.sqrt(2))))
    else:
        inner = op("Erf", op("Mul", x, p.number(math.sqrt(0.5))))
    gate = op("Add", inner, p.number(1))
    if p.rng.random() < 0.5:
        return op("Mul", op("Mul", x, gate), p.number(0.5))
    return op("Mul", op("Mul", x, p.number(0.5)), gate)


def gelu_tanh(p: Place) -> str:
    """By tanh; the cube as a power, or as products."""
    (x,), op = p.inputs, p.w.op
    is_power = p.rng.random() < 0.5
    cube = op("Pow", x, p.number(3)) if is_power else op("Mul", op("Mul", x, x), x)
    inner = op("Add", x, op("Mul", cube, p.number(0.044715)))
    gate = op("Add", op("Tanh", op("Mul", inner, p.number(math.sqrt(2 / math.pi)))), p.number(1))
    return op("Mul", op("Mul", x, p.number(0.5)), gate)


def hard_swish(p: Place) -> str:
    """HardSwish, times a HardSigmoid of a sixth, or of Add, Clip, Mul and Div."""
    (x,), op, how = p.inputs, p.w.op, p.rng.randrange(3)
    if how == 0:
        return op("HardSwish", x)
    if how == 1:
        return op("Mul", x, op("HardSigmoid", x, alpha=1 / 6, beta=0.5))
    gate = op("Clip", op("Add", x, p.number(3)), p.number(0), p.number(6))
    return op("Div", op("Mul", x, gate), p.number(6))
