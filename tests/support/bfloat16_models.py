"""Models of bfloat16, and the plans of their kernels."""

import math
from contextlib import contextmanager
from dataclasses import replace

import ml_dtypes
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

import selfbyoc
from selfbyoc import emit, op
from selfbyoc import machine as machines
from selfbyoc.analysis.kernels import kernels
from selfbyoc.codegen.cache.kernels import using
from selfbyoc.machine.products import Product
from selfbyoc.tvm import make_target
from selfbyoc.tvm.own_ops import BFLOATS

F32, F64, BF16 = np.float32, np.float64, ml_dtypes.bfloat16


def image_and_weights(seed=0, **shapes):
    """An image, or weights whose sums are about one."""
    rng, arrays = np.random.default_rng(seed), {}
    for name, shape in shapes.items():
        scale = 1 if name == "x" else math.prod(shape[1:]) ** -0.5
        arrays[name] = (rng.standard_normal(shape) * scale).astype(BF16)
    return arrays


@contextmanager
def as_if_words_paid(monkeypatch):
    """This machine, as if words of bfloat16 paid; its kernels are no others' on disk."""
    usual = machines._machine

    def with_words(*told):
        found = usual(*told)
        known = (*found.known, Product(BFLOATS, held=4))
        return replace(found, known=known, bfloat16=found.multiply_adds)

    monkeypatch.setattr(machines, "_machine", with_words)
    with using(False):
        yield


def given(seed=0, **shapes):
    rng = np.random.default_rng(seed)
    scale = {name: shape[-1] ** -0.5 if len(shape) > 1 else 1 for name, shape in shapes.items()}
    return {n: (rng.standard_normal(s) * scale[n]).astype(BF16) for n, s in shapes.items()}


def model(program, arrays):
    types = {name: (a.shape, str(a.dtype)) for name, a in arrays.items()}
    return emit(program, types, {name: a for name, a in arrays.items() if name != "x"})


def wide(arrays):
    return [a.astype(F64) for a in arrays.values()]


def plan(mod, target=None):
    target = make_target(target) if target else selfbyoc.host_target()
    (kernel,) = kernels(selfbyoc.partition_for_tefuse(mod, target=target))
    return kernel.schedule(target)[0].plan


def dense(x, w, b):
    return op.cast(op.relu(op.bias_add(op.dense(x, w), b, axis=-1)), dtype="float32")


def dense_in_numpy(x, w, b):
    return np.maximum(x @ w.T + b, 0)


def convolved(x, weight, stride=1, padding=0, groups=1):
    """A convolution in float64."""
    pad = [(0, 0), (0, 0), (padding, padding), (padding, padding)]
    windows = sliding_window_view(np.pad(x.astype(F64), pad), weight.shape[2:], (2, 3))
    windows = windows[:, :, ::stride, ::stride]
    pairs = zip(np.split(windows, groups, 1), np.split(weight, groups), strict=True)
    found = [np.einsum("nchwij,ocij->nohw", x, w.astype(F64), optimize=True) for x, w in pairs]
    return np.concatenate(found, 1)


def assert_rounded(found, arrays, in_numpy):
    """What products read was rounded, once: an element between two of bfloat16 may fall to the
    other side, and most do not.
    """
    wide = [a.astype(F64) for a in arrays.values()]
    rounded = in_numpy(*wide, rounded=lambda a: a.astype(F32).astype(BF16).astype(F64))
    exact = in_numpy(*wide, rounded=lambda a: a)
    errors = [np.abs(found - wanted).mean() / np.abs(exact).max() for wanted in (rounded, exact)]
    assert errors[0] < 2.0**-14
    assert errors[0] < errors[1] / 4
