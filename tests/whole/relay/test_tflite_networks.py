"""Whole quantised networks as TFLite's models are imported, channels last: kernels of bytes from
end to end, and bit for bit what TVM gives alone.
"""

import numpy as np
import pytest
from qnn_models import alone, mobilenet, resnet

import selfbyoc

# Residuals join convolutions; what is left moves, means in int32, or makes floats for the softmax.
MEAN = {"cast": 1, "global_avg_pool2d": 1, "requantize": 1}
POOL = {"cast": 2, "avg_pool2d": 1}
NETWORKS = {
    "mobilenet": (mobilenet, 10, {"nn.pad": 4, "reshape": 2, **MEAN}),
    "resnet": (resnet, 6, {"nn.pad": 5, "reshape": 2, **POOL}),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_it_is_bytes_from_end_to_end(name):
    made, convolutions, left = NETWORKS[name]
    network, mod = made()
    library = selfbyoc.build(mod)
    counts = {"conv2d_narrowed": convolutions, "dense_integers": 1, "softmax": 1}
    assert library.report.counts == counts
    assert library.report.left == {**left, "transpose": 1, "dequantize": 1}
    image = network.levels()
    for found, wanted in zip(library(image), alone(mod, image=image), strict=True):
        assert len(np.unique(wanted)) > 4
        np.testing.assert_array_equal(found, wanted)
