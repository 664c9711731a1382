"""QNN on Relay: our fixed-point arithmetic is TVM's own, and which qnn.conv2d is taken."""

import numpy as np
import pytest
from tvm import relay
from tvm.contrib import graph_executor

import selfbyoc
from selfbyoc import Composite, either, op
from selfbyoc.commands.fuzz.generation import planter
from selfbyoc.ops.fixed_point import fixed_point
from selfbyoc.schedules.composites.quantized import conv2d_narrowed
from selfbyoc.tvm import tvm

TYPES = {"x": ((1, 6, 9, 8), "int8"), "w": ((5, 6, 3, 3), "int8"), "b": ((5,), "int32")}


def build_and_run(mod, **arrays):
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(mod, target="llvm")
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    module.run(**arrays)
    return module.get_output(0).numpy()


def requantize(x, scale, zero_point=0, dtype="int8"):
    def number(value, of):
        return relay.const(value, of)

    return relay.qnn.op.requantize(
        x,
        number(scale, "float32"),
        number(0, "int32"),
        number(1.0, "float32"),
        number(zero_point, "int32"),
        out_dtype=dtype,
    )


def chain(zero_points=(0, 0), scale=0.0004, zero_point=0):
    variables = {n: relay.var(n, shape=s, dtype=d) for n, (s, d) in TYPES.items()}
    y = relay.qnn.op.conv2d(
        variables["x"],
        variables["w"],
        relay.const(zero_points[0], "int32"),
        relay.const(zero_points[1], "int32"),
        relay.const(0.5, "float32"),
        relay.const(0.25, "float32"),
        kernel_size=(3, 3),
        channels=5,
        padding=(1, 1),
    )
    y = relay.clip(requantize(relay.nn.bias_add(y, variables["b"]), scale, zero_point), -100, 100)
    return tvm.IRModule.from_expr(relay.Function(list(variables.values()), y))


@pytest.fixture(name="data")
def fixture_data():
    rng = np.random.default_rng(5)
    return {n: rng.integers(-128, 127, s, endpoint=True).astype(d) for n, (s, d) in TYPES.items()}


@pytest.mark.parametrize("scale", [0.5, 0.25, 1.0, 0.0037, 1.7e-5, 3.3])
def test_requantize_is_that_of_relay(scale):
    """Over many sums, halves among them, as far as TVM's own does not overflow int32."""
    most = int((2**31 - 1) / max(scale, 1)) - 4
    sums = np.concatenate([np.arange(-3000, 3000), np.linspace(-most, most, 2000)]).astype("int32")
    x = relay.var("x", shape=sums.shape, dtype="int32")
    mod = tvm.IRModule.from_expr(relay.Function([x], requantize(x, scale, 3)))
    multiplier, shift = fixed_point(float(np.float32(scale)))
    by_hand = [(int(v) * multiplier + (1 << (shift - 1))) >> shift for v in sums]
    np.testing.assert_array_equal(
        build_and_run(mod, x=sums), np.clip(np.array(by_hand) + 3, -128, 127)
    )


@pytest.mark.parametrize("rounding", ["UPWARD", "TONEAREST"])
@pytest.mark.parametrize(
    "scales",
    [
        0.25,
        [0.5, 0.25, 1.0, 0.0037, 3.3, 1.7e-5, 0.125],
        [0.25, 0.1, 0.3, 0.0037, 0.49, 1.7e-5, 0.2],
    ],
)
def test_roundings_are_those_of_relay(scales, rounding):
    """Of one scale and of one for each channel, halves of both signs among the sums; without us,
    and by the meaning in NumPy, too.
    """
    sums = np.arange(-3500, 3500, dtype="int32").reshape(2, 500, 7) + np.int32(3)
    x = relay.var("x", shape=sums.shape, dtype="int32")
    y = relay.qnn.op.requantize(
        x, relay.const(scales, "float32"), relay.const(3, "int32"), relay.const(2.0, "float32"),
        relay.const(-9, "int32"), axis=2, out_dtype="int8", rounding=rounding,
        compute_dtype="int64",
    )  # fmt: skip
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(y)))
    taken = Composite("taken", lambda x, m, s: op.relu(either(
        op.requantize(x), op.requantize_by_channel(x, m, s)
    )))  # fmt: skip
    parted = selfbyoc.partition_for_tefuse(mod, composites=[taken])
    assert selfbyoc.report(parted).counts == {"taken": 1}
    (found,) = selfbyoc.build(parted, "llvm")(sums)
    np.testing.assert_array_equal(found, build_and_run(mod, x=sums))
    assert selfbyoc.verify(mod, composites=[taken]).ok


def test_a_scale_that_leaves_nothing():
    """A product of 62 bits that is shifted by more is 0."""
    sums = np.array([-(2**31), -1, 0, 2**31 - 1] * 2, "int32").reshape(4, 2)
    for scales in (1e-30, [1e-30, 1e-25]):
        x = relay.var("x", shape=sums.shape, dtype="int32")
        y = relay.qnn.op.requantize(
            x, relay.const(scales, "float32"), relay.const(0, "int32"),
            relay.const(1.0, "float32"), relay.const(7, "int32"), axis=1, out_dtype="int8",
        )  # fmt: skip
        taken = Composite("taken", lambda x, m, s: either(
            op.requantize(x), op.requantize_by_channel(x, m, s)
        ))  # fmt: skip
        mod = tvm.IRModule.from_expr(relay.Function([x], y))
        library = selfbyoc.build(selfbyoc.partition_for_tefuse(mod, composites=[taken]))
        assert library.report.counts == {"taken": 1}
        np.testing.assert_array_equal(library(sums)[0], np.full(sums.shape, 7))


def test_halves_of_a_ratio_of_scales():
    """Of float32, as a model has them; found by fuzzing (`python -m selfbyoc fuzz`)."""
    sums = np.arange(-9000, 9000, dtype="int32").reshape(90, 200)

    def program(x):
        return op.relu(op.requantize(x, input_scale=0.002, output_scale=0.9, out_dtype="int8"))

    mod = selfbyoc.emit(program, {"x": (sums.shape, "int32")})
    composites = [Composite("narrow", lambda x: op.relu(op.requantize(x)))]
    parted = selfbyoc.partition_for_tefuse(mod, composites=composites)
    assert selfbyoc.report(parted).counts == {"narrow": 1}
    exact = planter.planted(mod, "qnn.requantize", rounding="UPWARD", compute_dtype="int64")
    np.testing.assert_array_equal(
        selfbyoc.build(parted, "llvm")(-sums)[0], build_and_run(exact, x=-sums)
    )
    assert selfbyoc.verify(mod, composites=composites).ok


@pytest.mark.parametrize("zero_point", [0, -7])
def test_symmetric_conv2d_is_taken(data, zero_point):
    mod = chain(zero_point=zero_point)
    parted = selfbyoc.partition_for_tefuse(mod, composites=[conv2d_narrowed])
    assert selfbyoc.report(parted).counts == {"conv2d_narrowed": 1}
    np.testing.assert_array_equal(build_and_run(parted, **data), build_and_run(mod, **data))


def test_a_zero_point_of_the_image_is_refused(data):
    mod = chain(zero_points=(4, 0))
    parted = selfbyoc.partition_for_tefuse(mod, composites=[conv2d_narrowed])
    report = selfbyoc.report(parted)
    assert report.counts == {}
    assert any("qnn_conv2d" in r.reason for r in report.records)
    np.testing.assert_array_equal(build_and_run(parted, **data), build_and_run(mod, **data))


def test_onnx_has_its_convolutions_of_bytes():
    """As kernels of levels; by ONNX's formula in int32 one was twenty times slower."""
    onnx = pytest.importorskip("onnx")
    make, bytes_ = onnx.helper, onnx.TensorProto.UINT8
    rng = np.random.default_rng(0)
    constants = {
        "xs": np.float32(0.1), "xz": np.uint8(7),
        "w": rng.integers(-9, 9, (5, 6, 3, 3)).astype("int8"), "ws": np.float32(0.02),
        "wz": np.int8(0), "ys": np.float32(0.5), "yz": np.uint8(120),
    }  # fmt: skip
    node = make.make_node("QLinearConv", ["x", *constants], ["y"])
    graph = make.make_graph(
        [node], "g", [make.make_tensor_value_info("x", bytes_, [1, 6, 9, 8])],
        [make.make_tensor_value_info("y", bytes_, [1, 5, 7, 6])],
        [onnx.numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()],
    )  # fmt: skip
    opsets = [make.make_opsetid("", 13)]
    mod = selfbyoc.from_onnx(make.make_model(graph, opset_imports=opsets, ir_version=8))
    assert selfbyoc.report(selfbyoc.partition_for_tefuse(mod)).counts == {"conv2d_int8": 1}
