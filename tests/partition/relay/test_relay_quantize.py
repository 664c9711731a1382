"""relay.quantize of networks with residuals, by each way to choose its scales: kernels take what it
writes between them, bit for bit as TVM computes it without us.
"""

import math

import numpy as np
import pytest
from relay_models import run_graph, typed_fixed_points
from tvm import relay

import selfbyoc
from selfbyoc import Composite, op
from selfbyoc.tvm import tvm

SHAPE = (2, 3, 11, 9)
CONFIGS = {
    "power2": {"global_scale": 8.0, "weight_scale": "power2"},
    "global": {"global_scale": 5.6, "weight_scale": "max"},
    "divergence": {"calibrate_mode": "kl_divergence", "weight_scale": "max"},
    "divergence, power2": {"calibrate_mode": "kl_divergence", "weight_scale": "power2"},
}
AROUND = {"multiply", "round", "clip", "cast"}  # floats to levels before the network, and back


def convolved(x, outputs, inputs, rng, taps=3, strides=1):
    def constant(*shape):
        return relay.const((rng.standard_normal(shape) * 0.2).astype("float32"))

    y = relay.nn.conv2d(
        x, constant(outputs, inputs, taps, taps), kernel_size=(taps, taps), channels=outputs,
        padding=(taps // 2,) * 4, strides=(strides, strides),
    )  # fmt: skip
    return relay.nn.bias_add(y, constant(outputs))


def network(rng, channels=5):
    """A residual of a pooled value, and one of another convolution."""
    x = relay.var("x", shape=SHAPE)
    a = relay.nn.relu(convolved(x, channels, 3, rng))
    a = relay.nn.max_pool2d(a, pool_size=(2, 2), padding=(0, 0, 1, 1))
    b = relay.nn.relu(convolved(a, channels, channels, rng))
    c = relay.nn.relu(relay.add(convolved(b, channels, channels, rng), a))
    d = convolved(c, channels + 1, channels, rng, strides=2)
    e = convolved(c, channels + 1, channels, rng, taps=1, strides=2)
    y = relay.nn.relu(relay.add(d, e))
    return relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], y)))


def limited(rng, channels=5):
    """A residual of ReLU6, whose upper limit is one of the sums."""
    x = relay.var("x", shape=SHAPE)
    a = relay.clip(convolved(x, channels, 3, rng), 0, 6)
    b = relay.clip(convolved(a, channels, channels, rng), 0, 6)
    y = relay.clip(relay.add(convolved(b, channels, channels, rng, taps=1), a), 0, 6)
    return relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], y)))


def fire(rng, channels=5):
    """SqueezeNet's: two convolutions of one image, joined, and read by one or by two others."""
    x = relay.var("x", shape=SHAPE)
    a = relay.nn.relu(convolved(x, channels, 3, rng, taps=1))
    for _ in range(2):
        ways = [relay.nn.relu(convolved(a, 4, channels, rng, taps=taps)) for taps in (1, 3)]
        joined = relay.concatenate(ways, axis=1)
        a = relay.nn.relu(convolved(joined, channels, 8, rng, taps=1))
    y = relay.nn.relu(relay.add(a, convolved(joined, channels, 8, rng)))
    return relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], y)))


def quantised(config, rng, channels, monkeypatch, network=network):
    monkeypatch.setattr(np, "math", math, raising=False)  # which 0.17 looks for
    calibrates = config.get("calibrate_mode") == "kl_divergence"
    data = [{"x": rng.standard_normal(SHAPE).astype("float32")}] if calibrates else None
    asked = relay.quantize.qconfig(skip_conv_layers=[], **config)
    with asked, tvm.transform.PassContext(opt_level=3):
        return relay.quantize.quantize(network(rng, channels), {}, dataset=data)


@pytest.mark.filterwarnings("ignore:Please use input parameter:DeprecationWarning")
@pytest.mark.parametrize(
    ("name", "channels"), [*((name, 5) for name in CONFIGS), ("divergence", 1)]
)
def test_residuals_join_the_kernels(name, channels, monkeypatch):
    rng = np.random.default_rng(11)
    mod = quantised(CONFIGS[name], rng, channels, monkeypatch)
    library = selfbyoc.build(mod, "llvm")
    assert library.report.counts == {"conv2d_narrowed": 5, "max_pool2d": 1}
    assert set(library.report.left) <= AROUND, library.report.left
    x = rng.standard_normal(SHAPE).astype("float32")
    found = library(x)[0]
    assert len(np.unique(found)) > 10
    np.testing.assert_array_equal(found, run_graph(relay.build(mod, target="llvm"), x))


@pytest.mark.parametrize("shift", [-9, 0, 2])
@pytest.mark.parametrize("multiplier", [1 << 30, (3 << 28) + 1])
def test_fixed_point_is_that_of_relay(multiplier, shift):
    """Of a power of two in 32 bits, where large sums overflow: both are the same."""
    x = relay.var("x", shape=(3, 335), dtype="int32")
    y = relay.nn.relu(relay.fixed_point_multiply(x, multiplier, shift))
    mod = tvm.IRModule.from_expr(relay.Function([x], y))
    taken = Composite("taken", lambda x: op.relu(op.fixed_point_multiply(x)))
    library = selfbyoc.build(selfbyoc.partition_for_tefuse(mod, composites=[taken]), "llvm")
    assert library.report.counts == {"taken": 1}
    sums = np.linspace(-(2**29), 2**29, 3 * 335).astype("int32").reshape(3, 335)
    sums[0] = np.arange(-167, 168)
    wanted = run_graph(relay.build(mod, target="llvm"), sums)
    np.testing.assert_array_equal(library(sums)[0], wanted)
    assert selfbyoc.verify(mod, composites=[taken]).ok


@pytest.mark.filterwarnings("ignore:Please use input parameter:DeprecationWarning")
@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize(("network", "convolutions"), [(limited, 3), (fire, 8)])
def test_limited_and_joined_ones_are_kernels(network, convolutions, name, monkeypatch):
    rng = np.random.default_rng(12)
    mod = quantised(CONFIGS[name], rng, 5, monkeypatch, network)
    library = selfbyoc.build(mod, "llvm")
    assert library.report.counts == {"conv2d_narrowed": convolutions}
    assert set(library.report.left) <= {*AROUND, "concatenate"}, library.report.left
    x = rng.standard_normal(SHAPE).astype("float32")
    found = library(x)[0]
    assert len(np.unique(found)) > 10
    alone = relay.build(typed_fixed_points(mod), target="llvm")
    np.testing.assert_array_equal(found, run_graph(alone, x))
