"""The Relay VM: it looks at no argument, so that the kernels must."""

import numpy as np
import pytest
import tvm
from tvm import relay

import selfbyoc
from selfbyoc import op

SHAPES = {"x": ((5, 17), "float32"), "w": ((9, 17), "float32")}


@pytest.fixture(scope="module")
def machine():
    parted = selfbyoc.partition_for_tefuse(
        selfbyoc.emit(lambda x, w: op.relu(op.dense(x, w)), SHAPES)
    )
    assert selfbyoc.report(parted).counts == {"dense": 1}
    executable = relay.vm.compile(parted, target=selfbyoc.host_target())
    return tvm.runtime.vm.VirtualMachine(executable, tvm.cpu())


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        ((7, 17), "float32"),
        ((5, 3), "float32"),
        ((17, 5), "float32"),
        ((85,), "float32"),
        ((5, 17, 1), "float32"),
        ((5, 17), "float64"),
        ((5, 17), "int8"),
    ],
)
def test_arguments_that_do_not_fit(machine, shape, dtype):
    """They were read as if they did, out of bounds; TVM alone refuses them in the same words."""
    w = np.ones((9, 17), "float32")
    with pytest.raises(tvm.TVMError, match="Assert fail"):
        machine.run(np.ones(shape, dtype), w)
    x = np.random.default_rng(0).standard_normal((5, 17)).astype("float32")
    found = machine.run(x, w).numpy()  # and goes on
    np.testing.assert_allclose(found, np.maximum(x @ w.T, 0), atol=1e-5)
