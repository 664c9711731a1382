"""Models of bfloat16, and the plans of their kernels."""

import ml_dtypes
import numpy as np

import selfbyoc
from selfbyoc import emit, op
from selfbyoc.analysis.kernels import kernels
from selfbyoc.tvm import make_target

F32, F64, BF16 = np.float32, np.float64, ml_dtypes.bfloat16


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
