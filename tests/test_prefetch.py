"""Prefetch of packed weights: in the code where a schedule asks for it; results stay the same."""

import numpy as np
import pytest

import selfbyoc
from selfbyoc import host_target, op
from selfbyoc._tvm import build_module, make_target, module_source, tvm
from selfbyoc.analysis.kernels import kernels
from selfbyoc.codegen.lower import finished
from selfbyoc.ir.emit import emit
from selfbyoc.runtime.tolerance import tolerance


def dense(rows, count, units):
    rng = np.random.default_rng(3)
    x, w = (rng.standard_normal(s).astype("float32") for s in ((rows, count), (units, count)))
    mod = emit(lambda x, w: op.dense(x, w), {"x": (rows, count)}, {"w": w})
    return selfbyoc.partition_for_tefuse(mod), x, w


def code(mod, target, form):
    (kernel,) = kernels(mod)
    _, scheduled = kernel.schedule(target)
    func = finished(scheduled.mod["main"], target).with_attr("global_symbol", "main")
    with tvm.transform.PassContext(opt_level=3):
        return module_source(build_module(tvm.IRModule({"main": func}), target), form)


@pytest.mark.parametrize(
    ("shape", "asked"),
    [
        ((64, 384, 96), True),
        ((19, 130 * 3, 80), True),
        ((64, 40, 96), False),
        ((1, 768, 96), False),
    ],
)
def test_tiles_that_share_a_piece_ask_for_the_next(shape, asked):
    mod, x, w = dense(*shape)
    assert ("llvm.prefetch" in code(mod, host_target(), "ll")) == asked
    wanted = x.astype("float64") @ w.T.astype("float64")
    found = selfbyoc.build(mod)(x)[0]
    bound = tolerance("float32", shape[1]) * np.abs(wanted).max()
    np.testing.assert_allclose(found, wanted, rtol=0, atol=bound)


def test_c_has_no_word_for_it():
    mod, *_ = dense(64, 384, 96)
    (kernel,) = kernels(mod)
    target = make_target("c")
    _, scheduled = kernel.schedule(target)
    assert "prefetch(" not in finished(scheduled.mod["main"], target).script()
