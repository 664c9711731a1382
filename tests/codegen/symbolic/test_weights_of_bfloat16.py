"""Weights of bfloat16 go to kernels that the size chooses, where the CPU has floats alone, too."""

import numpy as np
import onnx
import pytest
from few_bits_models import model_of

import selfbyoc
from selfbyoc.machine import host
from selfbyoc.tvm import GENERATION, make_target

pytestmark = pytest.mark.skipif(GENERATION == "relay", reason="bfloat16 needs Relax")
BFLOAT16 = pytest.importorskip("ml_dtypes").bfloat16


def opened(nodes, inputs, output, values):
    """A model whose first extents are any number."""
    model = model_of(nodes, inputs, output, values)
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "n"
    return selfbyoc.from_onnx(model)


def weights(*shape):
    array = np.random.default_rng(1).standard_normal(shape) / np.sqrt(np.prod(shape[1:]))
    return array.astype(BFLOAT16).astype("float32")


def dense():
    """-> the module, an input of so many rows, and what NumPy makes of it."""
    weight = weights(70, 333)
    nodes = [onnx.helper.make_node("MatMul", ["x", "w"], ["y"])]
    given = np.zeros((5, 333), "float32")
    mod = opened(nodes, {"x": given}, (5, 70), {"w": np.ascontiguousarray(weight.T)})
    return mod, (333,), lambda x: x.astype("float64") @ weight.T


def convolution():
    """The same of images."""
    weight = weights(37, 50, 1, 1)
    nodes = [onnx.helper.make_node("Conv", ["x", "w"], ["y"])]
    given = np.zeros((2, 50, 9, 11), "float32")
    mod = opened(nodes, {"x": given}, (2, 37, 9, 11), {"w": weight})
    sums = weight[:, :, 0, 0].astype("float64")
    return mod, (50, 9, 11), lambda x: np.einsum("oc,nchw->nohw", sums, x)


@pytest.mark.parametrize("made", [dense, convolution])
@pytest.mark.parametrize("cpu", ["haswell", ""])
def test_any_number_of_rows(made, cpu):
    target = make_target(f"llvm -mcpu={cpu}") if cpu else selfbyoc.host_target()
    if not host.runs(target):
        pytest.skip("no AVX2")
    mod, shape, in_numpy = made()
    library = selfbyoc.build(mod, target, weights="bfloat16")
    assert library.report.counts in ({"dense": 1}, {"conv2d": 1})
    for count in (1, 2, 7, 40, 131):
        x = np.random.default_rng(count).standard_normal((count, *shape)).astype("float32")
        # Rounded where the CPU multiplies bfloat16, so that both of its kernels say the same.
        x = x.astype(BFLOAT16).astype("float32")
        found, wanted = library(x)[0], in_numpy(x)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-6 * np.abs(wanted).max())
