"""Whole quantised networks as TFLite's models are imported, channels last: kernels of bytes from
end to end, and bit for bit what TVM gives alone.
"""

import numpy as np
import pytest
from qnn_models import alone, mobilenet, resnet

import selfbyoc

# Residuals join convolutions; what is left moves, or makes floats for the softmax.
NETWORKS = {
    "mobilenet": (mobilenet, 10),
    "resnet": (resnet, 6),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_it_is_bytes_from_end_to_end(name):
    made, convolutions = NETWORKS[name]
    network, mod = made()
    library = selfbyoc.build(mod)
    ends = {"avg_pool2d_integers": 1, "dense_integers": 1, "softmax": 1}
    counts = {"conv2d_narrowed": convolutions, **ends}
    assert library.report.counts == counts
    assert library.report.left == {"reshape": 2, "transpose": 1, "dequantize": 1}
    image = network.levels()
    for found, wanted in zip(library(image), alone(mod, image=image), strict=True):
        assert len(np.unique(wanted)) > 4
        np.testing.assert_array_equal(found, wanted)
