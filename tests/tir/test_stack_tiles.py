"""Register tiles are arrays on the stack; large buffers are not."""

import re

import numpy as np
import pytest

import selfbyoc
from selfbyoc import op
from selfbyoc.analysis.kernels import kernels
from selfbyoc.ir.emit import emit
from selfbyoc.tir.stack_tiles import MOST_BYTES, _is_tile, with_tiles_on_stack
from selfbyoc.tvm import make_target, module_source, tir, tvm
from selfbyoc.tvm.build import build_module

X, W = (64, 384), (96, 384)


def code(last):
    mod = emit(lambda x, w: op.dense(x, w), {"x": X}, {"w": np.ones(W, "float32")})
    (kernel,) = kernels(selfbyoc.partition_for_tefuse(mod))
    target = make_target({"kind": "llvm", "mcpu": "skylake-avx512"})
    _, scheduled = kernel.schedule(target)
    module = build_module(tvm.IRModule({"main": scheduled.mod["main"]}), target, last)
    return module_source(module, "ll")


def asked(source):
    """The buffers that the runtime is asked for."""
    calls = re.findall(r"%(\w+) = tail call .*i64 \d+, i32 2, i32 32\)", source)
    return {name.removesuffix("_void_ptr") for name in calls}


def test_the_runtime_is_not_asked_for_tiles():
    before = asked(code(None))
    tiles = {name for name in before if name.endswith("_local")}
    assert tiles
    assert before - tiles
    assert asked(code(with_tiles_on_stack)) == before - tiles


@pytest.mark.parametrize(
    ("scope", "dtype", "extents", "is_tile"),
    [
        ("local", "float32", (8, 2, 16), True),
        ("local", "float32x16", (16,), True),
        ("local", "int8", (MOST_BYTES,), True),
        ("local", "float32", (MOST_BYTES,), False),
        ("global", "float32", (16,), False),
    ],
)
def test_what_a_tile_is(scope, dtype, extents, is_tile):
    assert _is_tile(scope, dtype, [tir.const(e, "int32") for e in extents]) == is_tile


def test_results_stay():
    rng = np.random.default_rng(2)
    x, w = (rng.standard_normal(s).astype("float32") for s in (X, W))
    mod = selfbyoc.partition_for_tefuse(emit(lambda x, w: op.dense(x, w), {"x": X}, {"w": w}))
    assert selfbyoc.report(mod).counts == {"dense": 1}
    np.testing.assert_allclose(
        selfbyoc.build(mod, cache=False)(x)[0], x @ w.T, rtol=1e-4, atol=1e-4
    )
