"""Models as quantisers write them: QDQ and dynamic, by the products of bytes."""

import numpy as np
import onnx
import pytest
from levels import F32, bytes_of, sums
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import selfbyoc
from selfbyoc.errors import InputError


def qdq(graph_nodes, inputs, outputs, initializers, opset=17):
    """A model as a quantiser writes it."""
    graph = helper.make_graph(
        graph_nodes, "quantised", inputs, outputs,
        [numpy_helper.from_array(a, n) for n, a in initializers.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    onnx.checker.check_model(model)
    return model


def quantised_block():
    """Conv, max pool and a residual that reads the pool's result, too: scales by channel, zero
    points as vectors, one DequantizeLinear for two readers.
    """
    rng = np.random.default_rng(4)
    n = helper.make_node
    nodes = [
        n("QuantizeLinear", ["x", "xs", "xz"], ["xq"]),
        n("DequantizeLinear", ["xq", "xs", "xz"], ["xd"]),
        n("DequantizeLinear", ["w1", "ws", "wz"], ["w1d"], axis=0),
        n("DequantizeLinear", ["b1", "bs", "bz"], ["b1d"], axis=0),
        n("Conv", ["xd", "w1d", "b1d"], ["c1"], pads=[1] * 4),
        n("QuantizeLinear", ["c1", "cs", "cz"], ["c1q"]),
        n("DequantizeLinear", ["c1q", "cs", "cz"], ["c1f"]),
        n("MaxPool", ["c1f"], ["p"], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4),
        n("QuantizeLinear", ["p", "cs", "cz"], ["pq"]),
        n("DequantizeLinear", ["pq", "cs", "cz"], ["pd"]),
        n("DequantizeLinear", ["w2", "ws", "wz"], ["w2d"], axis=0),
        n("Conv", ["pd", "w2d"], ["c2"]),
        n("QuantizeLinear", ["c2", "xs", "xz"], ["c2q"]),
        n("DequantizeLinear", ["c2q", "xs", "xz"], ["c2d"]),
        n("Add", ["c2d", "pd"], ["a"]),
        n("QuantizeLinear", ["a", "xs", "xz"], ["y"]),
    ]
    values = {
        "xs": np.array(0.03, F32), "xz": np.array(120, "uint8"), "cs": np.array(0.11, F32),
        "cz": np.array(3, "uint8"), "ws": rng.uniform(0.001, 0.02, 16).astype(F32),
        "wz": np.zeros(16, "int8"), "bs": rng.uniform(1e-4, 6e-4, 16).astype(F32),
        "bz": np.zeros(16, "int32"), "b1": rng.integers(-2000, 2000, 16).astype("int32"),
        "w1": bytes_of(rng, (16, 5, 3, 3), "int8"), "w2": bytes_of(rng, (16, 16, 1, 1), "int8"),
    }  # fmt: skip
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 5, 13, 15))
    y = helper.make_tensor_value_info("y", TensorProto.UINT8, (1, 16, 7, 8))
    return qdq(nodes, [x], [y], values, 19)  # from which the reference knows these


def test_a_quantised_block_is_levels_from_end_to_end():
    model = quantised_block()
    x = np.random.default_rng(5).standard_normal((1, 5, 13, 15)).astype(F32)
    library = selfbyoc.build(selfbyoc.from_onnx(model))
    assert library.report.counts["conv2d_int8"] == 2
    (found,) = library(x)
    reference = ReferenceEvaluator(model)
    (wanted,) = reference.run(None, {"x": x})
    assert found.dtype == np.uint8
    off = np.abs(found.astype(int) - wanted.astype(int))
    # Where a float step of the reference rounds otherwise, near a half: one level, of few.
    assert off.max() <= 1
    assert (off > 0).mean() < 0.01


@pytest.mark.parametrize(
    ("dtype", "zeros", "wanted"),
    [
        ("int8", [0, 0], "int8"),  # by channel, as quantisers write it
        ("uint8", [128, 128], "uint8"),
        ("uint8", [120, 131], "int8"),  # moved, and bytes again
        ("uint8", [3, 250], "int16"),  # two at a time
    ],
)
def test_a_weight_by_channel_stays_in_bytes_where_it_can(dtype, zeros, wanted):
    """Products are four at a time then. What decides it is no result: nothing else would tell."""
    rng, n = np.random.default_rng(7), helper.make_node
    nodes = [
        n("DequantizeLinear", ["x", "s", "z"], ["xd"]),
        n("DequantizeLinear", ["w", "ws", "wz"], ["wd"], axis=0),
        n("Conv", ["xd", "wd"], ["y"]),
    ]
    spread = 250 if wanted == "int16" else 100
    weight = rng.integers(0, spread, (2, 8, 3, 3)) + (0 if wanted == "int16" else 70)
    weight = weight - 120 if dtype == "int8" else weight
    values = {
        "s": np.array(0.03, F32), "z": np.array(9, "uint8"), "ws": np.array([0.01, 0.02], F32),
        "wz": np.array(zeros, dtype), "w": weight.astype(dtype),
    }  # fmt: skip
    info = helper.make_tensor_value_info
    x, y = (
        info("x", TensorProto.UINT8, (1, 8, 7, 9)), info("y", TensorProto.FLOAT, (1, 2, 5, 7)),
    )  # fmt: skip
    model = qdq(nodes, [x], [y], values, 19)
    library = selfbyoc.build(selfbyoc.from_onnx(model))
    (record,) = [r for r in library.report.records if r.status == "matched"]
    assert {name: text.split("[")[0] for name, text, _ in record.args}["weight"] == wanted
    image = bytes_of(rng, (1, 8, 7, 9), "uint8")
    (wanted_floats,) = ReferenceEvaluator(model).run(None, {"x": image})
    np.testing.assert_allclose(library(image)[0], wanted_floats, rtol=1e-5, atol=1e-4)


def local_response(x):
    """onnx' reference takes another mean."""
    squares = np.pad(x * x, ((0, 0), (2, 2), (0, 0), (0, 0)))
    mean = sum(squares[:, n : n + x.shape[1]] for n in range(5)) / 5
    return x / (2 + 0.01 * mean) ** 0.75


N = helper.make_node
OF_ONE_VALUE = {
    "lrn": ([N("LRN", ["xd"], ["r"], size=5, alpha=1e-2, beta=0.75, bias=2.0)], local_response),
    "silu": (
        [N("Sigmoid", ["xd"], ["g"]), N("Mul", ["xd", "g"], ["r"])], lambda x: x / (1 + np.exp(-x)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_ONE_VALUE)
def test_elementwise_readers_share_what_they_dequantise(name):
    """Relax's importer takes LRN apart, and so do exporters silu: each is one op of one value."""
    middle, meaning = OF_ONE_VALUE[name]
    nodes = [N("DequantizeLinear", ["x", "s", "z"], ["xd"]), *middle,
             N("QuantizeLinear", ["r", "s", "z"], ["y"])]  # fmt: skip
    values = {"s": np.array(0.05, F32), "z": np.array(100, "uint8")}
    info = helper.make_tensor_value_info
    ends = [info(name, TensorProto.UINT8, (1, 16, 9, 11)) for name in "xy"]
    model = qdq(nodes, ends[:1], ends[1:], values, 19)
    library = selfbyoc.build(selfbyoc.from_onnx(model))
    assert [kind for _, kind, _ in library.report.ops] == ["dequantize", name, "quantize"]
    image = bytes_of(np.random.default_rng(8), (1, 16, 9, 11), "uint8")
    floats = meaning((image.astype(np.float64) - 100) * 0.05)
    wanted = np.clip(np.rint(floats / 0.05) + 100, 0, 255)
    off = np.abs(library(image)[0].astype(int) - wanted.astype(int))
    assert off.max() <= 1
    assert (off > 0).mean() < 0.01


def test_a_quantize_goes_before_what_joins_and_moves():
    """As SqueezeNet has it: two convolutions, joined, transposed, pooled, and quantised last."""
    rng = np.random.default_rng(9)
    nodes = [
        N("DequantizeLinear", ["x", "s", "z"], ["xd"]),
        N("DequantizeLinear", ["w", "ws", "wz"], ["wd"]),
        N("DequantizeLinear", ["v", "ws", "wz"], ["vd"]),
        N("Conv", ["xd", "wd"], ["a"], pads=[1] * 4), N("Relu", ["a"], ["ar"]),
        N("Conv", ["xd", "vd"], ["b"]), N("Relu", ["b"], ["br"]),
        N("Concat", ["ar", "br"], ["c"], axis=1),
        N("MaxPool", ["c"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        N("Transpose", ["p"], ["t"], perm=[0, 2, 3, 1]),
        N("QuantizeLinear", ["t", "s", "z"], ["y"]),
    ]  # fmt: skip
    values = {
        "s": np.array(0.05, F32), "z": np.array(7, "uint8"), "ws": np.array(0.004, F32),
        "wz": np.array(0, "int8"), "w": bytes_of(rng, (16, 8, 3, 3), "int8"),
        "v": bytes_of(rng, (9, 8, 1, 1), "int8"),
    }  # fmt: skip
    info = helper.make_tensor_value_info
    x = info("x", TensorProto.UINT8, (1, 8, 10, 14))
    y = info("y", TensorProto.UINT8, (1, 5, 7, 25))
    model = qdq(nodes, [x], [y], values, 19)
    library = selfbyoc.build(selfbyoc.from_onnx(model))
    report = library.report
    assert report.counts["conv2d_int8"] == 2
    quantizing = {owner for _, kind, owner in report.ops if kind == "quantize"}
    assert quantizing == {"conv2d_int8"}
    image = bytes_of(rng, (1, 8, 10, 14), "uint8")
    (wanted,) = ReferenceEvaluator(model).run(None, {"x": image})
    off = np.abs(library(image)[0].astype(int) - wanted.astype(int))
    assert off.max() <= 1
    assert (off > 0).mean() < 0.01


def dynamic(rows=(2, 9), per_channel=False, depth=70, units=33, zero=0):
    """As quantize_dynamic writes a MatMul and its bias."""
    dtype = "uint8" if zero else "int8"
    rng = np.random.default_rng(6)
    n = helper.make_node
    nodes = [
        n("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        n("MatMulInteger", ["q", "w", "z", "wz"], ["i"]),
        n("Cast", ["i"], ["f"], to=TensorProto.FLOAT),
        n("Mul", ["s", "ws"], ["both"]),
        n("Mul", ["f", "both"], ["m"]),
        n("Add", ["b", "m"], ["y"]),
    ]
    values = {
        "w": bytes_of(rng, (depth, units), dtype),
        "wz": np.full(units if per_channel else (), zero, dtype),
        "ws": rng.uniform(0.01, 0.02, units if per_channel else ()).astype(F32),
        "b": rng.standard_normal(units).astype(F32),
    }  # fmt: skip
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (*rows, depth))
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, (*rows, units))
    return qdq(nodes, [x], [y], values), values


def levels_of(x):
    """As DynamicQuantizeLinear has them: (levels less their zero point, scale)."""
    low, high = min(x.min(), F32(0)), max(x.max(), F32(0))
    scale = (high - low) / F32(255)
    zero = np.clip(np.round((F32(0) - low) / scale), 0, 255)
    return np.clip(np.round(x / scale) + zero, 0, 255).astype("int64") - int(zero), scale


@pytest.mark.parametrize(("per_channel", "zero"), [(False, 0), (True, 0), (False, 143)])
@pytest.mark.parametrize("rows", [(1,), (2, 9), (130,)])
def test_dynamic_quantisation_is_a_product_of_bytes(rows, per_channel, zero):
    model, values = dynamic(rows, per_channel, zero=zero)
    x = np.random.default_rng(7).standard_normal((*rows, 70)).astype(F32)
    library = selfbyoc.build(selfbyoc.from_onnx(model))
    assert library.report.counts == {"dense_int8": 1}
    (found,) = library(x)
    levels, scale = levels_of(x)
    total = levels @ (values["w"].astype("int64") - zero)
    wanted = total.astype(F32) * (scale * values["ws"]) + values["b"]
    np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("groups", [1, 12])
@pytest.mark.parametrize(
    ("dtype", "zero"), [("int8", 0), ("uint8", 128), ("uint8", 90), ("int8", "of each channel")]
)
@pytest.mark.parametrize("how", ["scaled", "by channel", "biased before"])
def test_dynamic_quantisation_of_convolutions(groups, dtype, zero, how):
    """As quantize_dynamic writes a Conv; older ones had a bias of int32."""
    rng, n = np.random.default_rng(10), helper.make_node
    weight = bytes_of(rng, (16 if groups == 1 else 12, 12 // groups, 3, 3), dtype)
    bias = rng.integers(-9000, 9000, (1, len(weight), 1, 1)).astype("int32")
    channels = (1, len(weight), 1, 1) if how == "by channel" else ()
    values = {
        "w": weight, "b": bias,
        "wz": np.zeros(len(weight), dtype) if zero == "of each channel" else np.array(zero, dtype),
        "ws": rng.uniform(0.01, 0.02, channels).astype(F32),
    }  # fmt: skip
    is_biased = how == "biased before"
    nodes = [
        n("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        n(
            "ConvInteger",
            ["q", "w", "z", "wz"],
            ["i"],
            pads=[0, 1, 1, 1],
            strides=[2, 1],
            group=groups,
        ),
        n("Add", ["i", "b"], ["t"]) if is_biased else n("Identity", ["i"], ["t"]),
        n("Cast", ["t"], ["f"], to=TensorProto.FLOAT),
        n("Mul", ["s", "ws"], ["both"]),
        n("Mul", ["f", "both"], ["m"]),
        n("Relu", ["m"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (2, 12, 9, 11))
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, (2, len(weight), 4, 11))
    values = values if is_biased else {k: v for k, v in values.items() if k != "b"}
    library = selfbyoc.build(selfbyoc.from_onnx(qdq(nodes, [x], [y], values)))
    assert library.report.counts == {"conv2d_int8": 1}
    given = rng.standard_normal((2, 12, 9, 11)).astype(F32)
    (found,) = library(given)
    levels, scale = levels_of(given)
    padded = np.pad(levels, ((0, 0), (0, 0), (0, 1), (1, 1)))
    total = sums(padded, weight.astype("int64") - int(values["wz"].flat[0]), 0, groups, 0)[
        :, :, ::2
    ]
    total = total + bias if is_biased else total
    wanted = np.maximum(total.astype(F32) * (scale * values["ws"]), 0)
    np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=2e-6 * wanted.max())


@pytest.mark.parametrize("scale", [0.0, -0.5, np.nan, np.inf])
def test_scales_that_mean_nothing_are_refused(scale):
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], name="here"),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"]),
    ]
    values = {"s": np.array(scale, F32), "z": np.array(3, "uint8")}
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, (2, 3)) for n in "xy")
    with pytest.raises(InputError, match=r"here.*scale 's' holds .* above 0"):
        selfbyoc.from_onnx(qdq(nodes, [x], [y], values))


def test_an_axis_that_is_not_there_is_refused():
    nodes = [helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"], axis=2)]
    values = {
        "q": np.ones((2, 3), "int8"), "s": np.ones(3, F32), "z": np.zeros(3, "int8"),
    }  # fmt: skip
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, (2, 3))
    with pytest.raises(InputError, match="axis 2"):
        selfbyoc.from_onnx(qdq(nodes, [], [y], values))
