"""Quantised networks in Relay's qnn as the importer of TFLite's models writes them: NHWC, weights
HWIO (depthwise HWOI) with a scale for each channel, residuals as qnn.add.
"""

from dataclasses import dataclass

import numpy as np
from tvm import relay
from tvm.contrib.graph_executor import GraphModule

from selfbyoc.tvm import tvm

qnn = relay.qnn.op


def number(value, dtype="int32"):
    return relay.const(np.asarray(value, dtype))


@dataclass(frozen=True)
class Levels:
    """An int8 tensor, its shape, scale and zero point."""

    expr: relay.Expr
    shape: tuple
    scale: float
    zero: int


class Network:
    """Layers over seeded weights; a module of the last one."""

    def __init__(self, shape, seed=0):
        self.rng = np.random.default_rng(seed)
        self.image = relay.var("image", shape=shape, dtype="int8")
        self.input = Levels(self.image, shape, 0.02, -3)

    def _zero(self):
        return int(self.rng.integers(-20, 20))

    def _narrowed(self, sums, x, factors, shape, axis, clip):
        """The requantize and the activation of a layer."""
        scale, zero = 0.04, self._zero()
        expr = qnn.requantize(
            sums, number(x.scale * factors, "float32"), number(0), number(scale, "float32"),
            number(zero), axis=axis, out_dtype="int8",
        )  # fmt: skip
        expr = (
            relay.clip(expr, max(-128, zero), min(127, zero + round(6 / scale))) if clip else expr
        )
        return Levels(expr, shape, scale, zero)

    def conv(self, x, outputs, kernel=1, stride=1, clip=True, groups=1):
        """Padded as TFLite's SAME."""
        n, high, wide, inputs = x.shape
        out = (n, -(-high // stride), -(-wide // stride), outputs)
        reach = (out[1] - 1) * stride + kernel, (out[2] - 1) * stride + kernel
        edges = max(0, reach[0] - high), max(0, reach[1] - wide)
        before = edges[0] // 2, edges[1] // 2
        depth = kernel * kernel * inputs // groups
        layout = "HWIO" if groups == 1 else "HWOI"
        taps = (inputs, outputs) if groups == 1 else (inputs, outputs // inputs)
        weight = self.rng.integers(-127, 128, (kernel, kernel, *taps)).astype("int8")
        factors = self.rng.uniform(0.5, 1.5, outputs) * 2 / (127 * depth**0.5)
        sums = qnn.conv2d(
            x.expr, number(weight, "int8"), number(x.zero), number(0), number(x.scale, "float32"),
            number(factors, "float32"), kernel_size=(kernel, kernel), channels=outputs,
            strides=(stride, stride), groups=groups, data_layout="NHWC", kernel_layout=layout,
            padding=(*before, edges[0] - before[0], edges[1] - before[1]), out_dtype="int32",
        )  # fmt: skip
        bias = self.rng.integers(-900, 900, outputs)
        sums = relay.nn.bias_add(sums, number(bias), axis=3)
        return self._narrowed(sums, x, factors, out, 3, clip)

    def add(self, x, y, clip=False):
        scale, zero = 0.05, self._zero()
        expr = qnn.add(
            x.expr, y.expr, *_of(x), *_of(y), number(scale, "float32"), number(zero)
        )  # fmt: skip
        expr = relay.clip(expr, zero, 127) if clip else expr
        return Levels(expr, x.shape, scale, zero)

    def mean(self, x):
        """Over the image, in int32; axes are kept, as Keras' pooling has them."""
        scale, zero = 0.01, self._zero()
        sums = relay.mean(relay.cast(x.expr, "int32"), axis=(1, 2), keepdims=True)
        expr = qnn.requantize(
            sums, *_of(x), number(scale, "float32"), number(zero), out_dtype="int8"
        )
        return Levels(expr, (x.shape[0], 1, 1, x.shape[3]), scale, zero)

    def avg_pool(self, x, size):
        """Of one scale, as TFLite has it."""
        sums = relay.nn.avg_pool2d(
            relay.cast(x.expr, "int32"), pool_size=(size, size), strides=(size, size), layout="NHWC"
        )
        out = (x.shape[0], x.shape[1] // size, x.shape[2] // size, x.shape[3])
        return Levels(relay.cast(sums, "int8"), out, x.scale, x.zero)

    def dense(self, x, units):
        inputs = int(np.prod(x.shape[1:]))
        weight = self.rng.integers(-127, 128, (units, inputs)).astype("int8")
        factor = np.asarray(2 / (127 * inputs**0.5))
        rows = relay.reshape(x.expr, (-1, inputs))
        sums = qnn.dense(
            rows, number(weight, "int8"), number(x.zero), number(0), number(x.scale, "float32"),
            number(factor, "float32"), units=units, out_dtype="int32",
        )  # fmt: skip
        sums = relay.nn.bias_add(sums, number(self.rng.integers(-900, 900, units)))
        return self._narrowed(sums, x, factor, (x.shape[0], units), -1, clip=False)

    def module(self, x):
        """The levels, and their softmax, dequantised and quantised."""
        floats = relay.nn.softmax(qnn.dequantize(x.expr, *_of(x)), axis=-1)
        shares = qnn.quantize(floats, number(1 / 256, "float32"), number(-128), out_dtype="int8")
        return tvm.IRModule.from_expr(relay.Function([self.image], relay.Tuple([x.expr, shares])))

    def levels(self):
        """An input."""
        return self.rng.integers(-128, 128, self.input.shape).astype("int8")


def _of(x):
    return number(x.scale, "float32"), number(x.zero)


def mobilenet(size=32, seed=1):
    """A stem, inverted residuals with and without a stride, a head: MobileNetV2's blocks."""
    net = Network((1, size, size, 3), seed)
    x = net.conv(net.input, 16, kernel=3, stride=2)
    x = net.conv(x, 16, kernel=3, groups=16)
    x = net.conv(x, 8, clip=False)
    for outputs, stride in ((12, 2), (12, 1)):
        wide = 6 * x.shape[3]
        y = net.conv(net.conv(x, wide), wide, kernel=3, stride=stride, groups=wide)
        y = net.conv(y, outputs, clip=False)
        x = net.add(x, y) if y.shape == x.shape else y
    x = net.mean(net.conv(x, 64))
    return net, net.module(net.dense(x, 10))


def resnet(size=32, seed=2):
    """A stem, a pool, basic blocks with and without a projection."""
    net = Network((1, size, size, 3), seed)
    x = net.conv(net.input, 16, kernel=7, stride=2)
    for outputs, stride in ((16, 1), (32, 2)):
        y = net.conv(net.conv(x, outputs, kernel=3, stride=stride), outputs, kernel=3, clip=False)
        if y.shape != x.shape:
            x = net.conv(x, outputs, stride=stride, clip=False)
        x = net.add(y, x, clip=True)
    x = net.avg_pool(x, x.shape[1])
    return net, net.module(net.dense(x, 10))


def alone(mod, **arrays):
    """What TVM makes of a module by itself, in the arithmetic of integers that its qnn has where a
    CPU has no SSE4.1: the result, or several.
    """
    with tvm.transform.PassContext(opt_level=3):
        library = relay.build(mod, target="llvm")
    module = GraphModule(library["default"](tvm.cpu()))
    module.run(**arrays)
    found = [module.get_output(n).numpy() for n in range(module.get_num_outputs())]
    return found if len(found) > 1 else found[0]
