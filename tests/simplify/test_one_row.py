"""Windows of one axis are images of one row, on both generations: which composites take them, and
NumPy's results.
"""

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import selfbyoc
from selfbyoc.runtime.tolerance import tolerance
from selfbyoc.simplify.one_row import OneRow, of_two_axes
from selfbyoc.tvm import GENERATION, tvm

if GENERATION == "relay":
    from tvm import relay as lang

    nn, ops = lang.nn, lang

    def typed(name, shape):
        return lang.var(name, shape=shape)

    def module(x, result):
        return tvm.IRModule.from_expr(lang.Function([x], result))

    def batch_norm(x, parts, axis):
        return nn.batch_norm(x, *parts, axis=axis)[0]
else:
    from tvm import relax as lang

    nn, ops = lang.op.nn, lang.op

    def typed(name, shape):
        return lang.Var(name, lang.TensorType(shape, "float32"))

    def module(x, result):
        builder = lang.BlockBuilder()
        with builder.function("main", [x]):
            builder.emit_func_output(builder.emit(result))
        return builder.get()

    def batch_norm(x, parts, axis):
        return lang.TupleGetItem(nn.batch_norm(x, *parts, axis=axis, training=False), 0)


RNG = np.random.default_rng(5)


def some(*shape):
    return RNG.standard_normal(shape).astype("float32")


def built(x, result):
    mod = module(x, result)
    return selfbyoc.build(selfbyoc.partition_for_tefuse(mod), cache=False)


def convolved(x, weight, strides=1, padding=(0, 0), dilation=1, groups=1):
    """By definition, in float64; x [N, I, W], weight [O, I / groups, K]."""
    x, weight = x.astype("float64"), weight.astype("float64")
    x = np.pad(x, [(0, 0), (0, 0), padding])
    reach = (weight.shape[2] - 1) * dilation + 1
    seen = sliding_window_view(x, reach, axis=2)[:, :, ::strides, ::dilation]  # N I W K
    parts = zip(np.split(seen, groups, 1), np.split(weight, groups, 0), strict=True)
    return np.concatenate([np.einsum("niwk,oik->now", s, w) for s, w in parts], 1)


def check(library, x, expected, composites):
    assert library.report.counts == composites
    (found,) = library(x)
    bound = tolerance("float32", 64) * np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=bound)


SHAPES = {
    "plain": ((1, 8, 32), (16, 8, 3), {}),
    "speech": ((1, 1, 400), (64, 1, 10), {"strides": 5}),
    "tail": ((2, 5, 37), (7, 5, 4), {"padding": (2, 1)}),
    "wide": ((1, 16, 50), (32, 2, 9), {"padding": (4, 4), "groups": 8}),
    "depthwise": ((2, 24, 31), (24, 1, 7), {"padding": (3, 3), "groups": 24}),
    "causal": ((1, 12, 29), (9, 12, 2), {"padding": (4, 0), "dilation": 4}),
    "one-tap": ((1, 6, 23), (10, 6, 1), {}),
    "one-place": ((1, 6, 5), (10, 6, 5), {}),
}


@pytest.mark.parametrize("is_constant", [True, False], ids=["constant", "computed"])
@pytest.mark.parametrize("name", SHAPES)
def test_convolutions(name, is_constant):
    shape, kernel, attrs = SHAPES[name]
    weight, data = some(*kernel), some(*shape)
    x = typed("x", shape)
    given = lang.const(weight)
    if not is_constant:  # each element of it depends on the input, and is as it was
        zero = ops.multiply(ops.max(x), lang.const(np.float32(0)))
        given = ops.add(given, zero)
    expected = convolved(data, weight, **attrs)
    found = nn.conv1d(x, given, **attrs, **sized(kernel))
    library = built(x, nn.relu(found))
    assert library.report.counts["conv2d"] == 1
    check(library, data, np.maximum(expected, 0), library.report.counts)


def sized(kernel):
    """What Relay does not find out by itself."""
    return {"channels": kernel[0], "kernel_size": kernel[2]} if GENERATION == "relay" else {}


def test_the_ops_after_it_join():
    weight, bias, data = some(16, 8, 3), some(1, 16, 1), some(2, 8, 21)
    parts = [some(16), some(16), some(16), np.abs(some(16)) + 0.5]
    x = typed("x", data.shape)
    found = ops.add(nn.conv1d(x, lang.const(weight), padding=(1, 1), **sized(weight.shape)),
                    lang.const(bias))  # fmt: skip
    found = nn.relu(batch_norm(found, [lang.const(p) for p in parts], 1))
    gamma, beta, mean, var = (p[:, None].astype("float64") for p in parts)
    expected = convolved(data, weight, padding=(1, 1)) + bias
    expected = np.maximum((expected - mean) / np.sqrt(var + 1e-5) * gamma + beta, 0)
    check(built(x, found), data, expected, {"conv2d_batch_norm_relu": 1})


def test_two_with_all_between_and_a_residual():
    first, second, data = some(8, 8, 3), some(8, 8, 5), some(1, 8, 19)
    columns = some(19)
    x = typed("x", data.shape)
    found = nn.relu(nn.conv1d(x, lang.const(first), padding=(1, 1), **sized(first.shape)))
    found = ops.multiply(found, lang.const(columns))  # of the last axis alone
    again = nn.conv1d(found, lang.const(second), padding=(2, 2), **sized(second.shape))
    library = built(x, ops.add(again, x))
    middle = np.maximum(convolved(data, first, padding=(1, 1)), 0) * columns
    expected = convolved(middle, second, padding=(2, 2)) + data
    check(library, data, expected, {"conv2d": 1, "conv2d_add": 1})


def test_channels_last():
    weight, bias, data = some(6, 4, 3), some(6), some(2, 15, 4)
    kernel = np.ascontiguousarray(weight.transpose(2, 1, 0))
    x = typed("x", data.shape)
    layouts = {"data_layout": "NWC", "kernel_layout": "WIO"}
    found = nn.conv1d(x, lang.const(kernel), **layouts, **sized(weight.shape))
    library = built(x, nn.relu(ops.add(found, lang.const(bias))))
    expected = convolved(data.transpose(0, 2, 1), weight).transpose(0, 2, 1) + bias
    check(library, data, np.maximum(expected, 0), {"conv2d_nhwc": 1})


def test_pools():
    data = some(2, 7, 27)
    x = typed("x", data.shape)
    found = nn.max_pool1d(x, 3, 2, padding=(1, 1))
    found = nn.avg_pool1d(ops.exp(found), 4, 3, count_include_pad=True, padding=(2, 1))
    library = built(x, nn.adaptive_avg_pool1d(found, 1))
    padded = np.pad(data, [(0, 0), (0, 0), (1, 1)], constant_values=-np.inf)
    middle = np.exp(sliding_window_view(padded, 3, axis=2)[:, :, ::2].max(-1))
    middle = np.pad(middle, [(0, 0), (0, 0), (2, 1)])
    expected = sliding_window_view(middle, 4, axis=2)[:, :, ::3].mean(-1).mean(-1, keepdims=True)
    pools = {"max_pool2d": 1, "avg_pool2d": 1, "global_avg_pool2d": 1}
    check(library, data, expected, pools)


@pytest.mark.parametrize(
    ("layout", "shape", "put"),
    [
        ("NCW", (2, 3, 4), [2, 3, 1, 4]),
        ("NCW", (3, 1), [3, 1, 1]),
        ("NCW", (4,), [4]),
        ("NWC", (2, 4, 3), [2, 1, 4, 3]),
        ("NWC", (4, 3), [4, 3]),
        ("NCW", (), []),
    ],
)
def test_where_the_rows_are(layout, shape, put):
    assert OneRow.of(layout).put(shape) == put


def test_axes_move_with_the_rows():
    assert [OneRow.of("NCW").axis(a) for a in (0, 1, 2, -1, -2)] == [0, 1, 3, 3, 1]
    assert [OneRow.of("NWC").axis(a) for a in (0, 1, 2, -1, -2)] == [0, 2, 3, 3, 2]


@pytest.mark.parametrize(
    "layouts",
    [
        {"data_layout": "NCW4c", "kernel_layout": "OIW4i", "out_layout": ""},
        {"data_layout": "NCW", "kernel_layout": "OIW", "out_layout": "NWC"},
    ],
)
def test_other_layouts_stay(layouts):
    plain = {"strides": [1], "padding": [0, 0], "dilation": [1], "groups": 1}
    assert of_two_axes("nn.conv1d", {**plain, **layouts}) is None


@pytest.mark.usefixtures("vocabulary_as_before")
def test_an_op_that_a_user_declared_stays():
    raw = {
        "strides": [1], "padding": [0, 0], "dilation": [1], "groups": 1,
        "data_layout": "NCW", "kernel_layout": "OIW", "out_layout": "",
    }  # fmt: skip
    assert of_two_axes("nn.conv1d", raw) is not None
    selfbyoc.declare(
        "mine", compute=lambda x, w: x, numpy=lambda x, w: x, inputs=2, kind="opaque",
        shape=lambda x, w: x,
        **{GENERATION: "nn.conv1d"},
    )  # fmt: skip
    assert of_two_axes("nn.conv1d", raw) is None
