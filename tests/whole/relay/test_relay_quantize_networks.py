"""A51: relay.quantize of three real networks, by each calibration: every convolution and dense
layer is a kernel, with its fixed point in it, bit for bit as TVM computes it.
"""

import math
import warnings

import numpy as np
import pytest
from relay_models import run_graph, typed_fixed_points
from tvm import relay

import selfbyoc
from selfbyoc.tvm import tvm

torch = pytest.importorskip("torch", reason="PyTorch is not installed (make test TORCH=1)")
from torch_networks import network  # noqa: E402 (it imports torch)  # isort: skip

SIZE, WIDTH = 32, 8  # of the picture; channels are an eighth
CONFIGS = {
    "global": {"calibrate_mode": "global_scale", "global_scale": 5.6, "weight_scale": "max"},
    "power2": {"calibrate_mode": "global_scale", "global_scale": 8.0, "weight_scale": "power2"},
    "divergence": {"calibrate_mode": "kl_divergence", "weight_scale": "max"},
    "divergence, power2": {"calibrate_mode": "kl_divergence", "weight_scale": "power2"},
    "percentile": {"calibrate_mode": "percentile", "weight_scale": "max"},
}
# A mean of floats, at the end of a network, is summed in another order than TVM's.
OF_LEVELS = [c for c in selfbyoc.BUILTIN if c.name != "global_avg_pool2d"]
CASES = [
    *(("ResNet-18", config, 3) for config in CONFIGS),
    *(("MobileNetV2", config, 3) for config in ("global", "power2", "divergence")),
    *(("SqueezeNet", config, 3) for config in CONFIGS),
    # Batch norms and biases are not folded first: so TVM's tutorial does it.
    *((name, "global", 2) for name in ("ResNet-18", "MobileNetV2")),
]
PRODUCTS = {"ResNet-18": (20, 1), "MobileNetV2": (52, 1), "SqueezeNet": (26, 0)}


def imported(name):
    """By TVM's importer: Relay, its weights, and a picture."""
    x = torch.randn(1, 3, SIZE, SIZE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the importer is older than this PyTorch
        traced = torch.jit.trace(network(name, WIDTH), x)
        mod, params = relay.frontend.from_pytorch(traced, [("x", tuple(x.shape))])
    return mod, params, x.numpy()


def quantised(name, config, level, monkeypatch):
    monkeypatch.setattr(np, "math", math, raising=False)  # which 0.17 looks for
    mod, params, x = imported(name)
    rng = np.random.default_rng(5)
    data = [{"x": rng.standard_normal(x.shape).astype("float32")} for _ in range(2)]
    asked = relay.quantize.qconfig(skip_conv_layers=[], skip_dense_layer=False, **config)
    with asked, tvm.transform.PassContext(opt_level=level):
        return relay.quantize.quantize(mod, params, dataset=data), x


@pytest.mark.filterwarnings("ignore:Please use input parameter:DeprecationWarning")
@pytest.mark.parametrize(("name", "config", "level"), CASES)
def test_bit_for_bit(name, config, level, monkeypatch):
    mod, x = quantised(name, CONFIGS[config], level, monkeypatch)
    library = selfbyoc.build(mod, "llvm", composites=OF_LEVELS)
    counts, left = library.report.counts, library.report.left
    convolutions, dense = PRODUCTS[name]
    assert counts["conv2d_narrowed"] == convolutions
    assert counts.get("dense_integers", 0) == dense
    assert not {"conv2d", "dense", "fixed_point_multiply"} & set(left), left
    found = library(x)[0]
    assert len(np.unique(found)) > 10
    alone = relay.build(typed_fixed_points(mod), target="llvm")
    np.testing.assert_array_equal(found, run_graph(alone, x))
