"""`selfbyoc.transform.Partition` in a pipeline of TVM's passes."""

import numpy as np
import pytest

import selfbyoc
from selfbyoc import Composite, op
from selfbyoc.ir.emit import emit
from selfbyoc.transform import Partition
from selfbyoc.tvm import GENERATION, structural_equal, tvm

SHAPES = {"x": ((4, 17), "float32"), "w": ((9, 17), "float32")}
MINE = Composite("mine", lambda x, w: op.tanh(op.dense(x, w)))


def program(x, w):
    return op.tanh(op.dense(x, w))


def passes():
    if GENERATION == "relay":
        return tvm.relay.transform.InferType()
    return tvm.relax.transform.CanonicalizeBindings()


def test_in_a_pipeline():
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape).astype(dtype) for shape, dtype in SHAPES.values())
    mod = emit(program, SHAPES)
    done = tvm.transform.Sequential([passes(), Partition(composites=[MINE]), passes()])(mod)
    assert selfbyoc.report(done).counts == {"mine": 1}
    (found,) = selfbyoc.build(done)(x, w)
    np.testing.assert_allclose(found, np.tanh(x @ w.T), atol=1e-5)


@pytest.mark.parametrize("weights", [False, True])
def test_it_is_the_function(weights):
    mod = emit(program, SHAPES)
    params = {"w": np.ones((9, 17), "float32")} if weights else None
    options = {"params": params, "target": "llvm", "composites": [MINE]}
    wanted = selfbyoc.partition_for_tefuse(mod, **options)
    assert structural_equal(Partition(**options)(mod), wanted)


def test_errors_come_through():
    mod = emit(program, SHAPES)
    with pytest.raises(Exception, match="partitioned already"):
        Partition()(Partition()(mod))
