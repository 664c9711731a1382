"""`build(requantize="combined")`: one factor from a sum of levels to the next level."""

import numpy as np
import pytest
from levels import F32, HALF, bytes_of, level, sums
from onnx import ModelProto, TensorProto, helper, numpy_helper

import selfbyoc
from selfbyoc import emit, op
from selfbyoc.__main__ import main
from selfbyoc.errors import InputError
from selfbyoc.ir.generation import ir
from selfbyoc.partition.generation import ir as partitioning
from selfbyoc.simplify.combined_scales import with_combined_scales
from selfbyoc.tvm import GENERATION

N = helper.make_node
X, Y = F32(0.0311), F32(0.0617)
XZ, YZ = 120, 101
SHAPE, UNITS = (1, 6, 9, 7), 11


def qdq(nodes, shape, values, rank=4, outputs=("y",)):
    """Nodes from `xd`, the dequantised input, to `f`, which is quantised as y."""
    scales = {"xs": X, "xz": np.uint8(XZ), "ys": Y, "yz": np.uint8(YZ)}
    info = helper.make_tensor_value_info
    open_ = [f"d{n}" for n in range(rank)]
    graph = helper.make_graph(
        [
            N("DequantizeLinear", ["x", "xs", "xz"], ["xd"]),
            *nodes,
            N("QuantizeLinear", ["f", "ys", "yz"], ["y"]),
        ],
        "quantised",
        [info("x", TensorProto.UINT8, shape)],
        [info(n, TensorProto.UINT8 if n == "y" else TensorProto.FLOAT, open_) for n in outputs],
        [numpy_helper.from_array(np.asarray(a), n) for n, a in {**scales, **values}.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def layer(shape, seed=0, name=""):
    """A weight of 7 bits by channel and its bias, by name; both in int8 and int32."""
    rng = np.random.default_rng(seed)
    units = shape[0]
    scales = rng.uniform(0.001, 0.01, units).astype(F32)
    return {
        f"w{name}": rng.integers(-64, 64, shape).astype("int8"),
        f"wz{name}": np.zeros(units, "int8"), f"ws{name}": scales,
        f"b{name}": rng.integers(-4000, 4000, units).astype("int32"),
        f"bs{name}": X * scales, f"bz{name}": np.zeros(units, "int32"),
    }  # fmt: skip


def conv(source, to, name="", **attrs):
    """The nodes of one."""
    return [
        N("DequantizeLinear", [f"w{name}", f"ws{name}", f"wz{name}"], [f"wd{name}"], axis=0),
        N("DequantizeLinear", [f"b{name}", f"bs{name}", f"bz{name}"], [f"bd{name}"], axis=0),
        N("Conv", [source, f"wd{name}", f"bd{name}"], [to], **attrs),
    ]


def by_one_factor(total, values, name="", then=lambda x: x):
    """int32 sums [n, units, ...] as levels."""
    column = (-1, *[1] * (total.ndim - 2))
    bias, scales = values[f"b{name}"].reshape(column), values[f"ws{name}"].reshape(column)
    scaled = then((total + bias).astype(F32) * (X * scales / Y))
    even = (
        np.round(scaled) if GENERATION == "relax" else np.trunc(scaled + np.copysign(HALF, scaled))
    )
    return np.clip(even + YZ, 0, 255).astype("uint8")


def quantizers(model):
    """The scales of a model's quantizers by one factor; of a module's, too."""
    mod = selfbyoc.from_onnx(model) if isinstance(model, ModelProto) else model
    mod = with_combined_scales(partitioning.prepare(mod, None))
    calls = (call for call in ir.read(mod["main"]).ops if call.kind == "quantize")
    return [call.inputs[1].scalar for call in calls]


def built(model):
    """A library by one factor; every level is made so."""
    assert set(quantizers(model)) == {1.0}
    return selfbyoc.build(selfbyoc.from_onnx(model), requantize="combined")


THEN = {
    "": ([], lambda x: x),
    "Relu": ([N("Relu", ["c"], ["f"])], lambda x: np.maximum(x, 0)),
    "LeakyRelu": (
        [N("LeakyRelu", ["c"], ["f"], alpha=0.25)],
        lambda x: np.where(x < 0, x * F32(0.25), x),
    ),
    "Clip": (
        [N("Clip", ["c", "low", "high"], ["f"])],
        lambda x: np.clip(x, F32(-1) / Y, F32(3) / Y),
    ),
}  # fmt: skip


@pytest.mark.parametrize("then", THEN)
@pytest.mark.parametrize("groups", [1, SHAPE[1]])
def test_a_convolution(then, groups):
    """Bit for bit what NumPy's integers and one product give; with groups a depthwise one."""
    after, numpy_of = THEN[then]
    values = layer((groups if groups > 1 else UNITS, SHAPE[1] // groups, 3, 3))
    nodes = [*conv("xd", "c" if after else "f", pads=[1] * 4, group=groups), *after]
    ends = {"low": F32(-1), "high": F32(3)} if then == "Clip" else {}
    library = built(qdq(nodes, SHAPE, {**values, **ends}))
    assert sum(n for name, n in library.report.counts.items() if "int8" in name) == 1
    x = bytes_of(np.random.default_rng(1), SHAPE, "uint8")
    wanted = by_one_factor(sums(x, values["w"], XZ, groups), values, then=numpy_of)
    np.testing.assert_array_equal(library(x)[0], wanted)


def test_a_clip_as_tvm_has_it():
    """Relax calls it with numbers, Relay has attributes; ONNX's importer writes other ops."""
    values = layer((UNITS, SHAPE[1], 1, 1))

    def program(x, weight):
        image, levels = op.dequantize(x, float(X), XZ), op.dequantize(weight, 0.005, 0)
        found = op.clip(op.conv2d(image, levels), a_min=-1.0, a_max=3.0)
        return op.quantize(found, float(Y), YZ, out_dtype="uint8")

    types = {"x": (SHAPE, "uint8"), "weight": (values["w"].shape, "int8")}
    mod = emit(program, types, {"weight": values["w"]})
    assert quantizers(mod) == [1.0]
    library = selfbyoc.build(mod, requantize="combined")
    x = bytes_of(np.random.default_rng(1), SHAPE, "uint8")
    total = sums(x, values["w"], XZ, padding=0).astype(F32) * (X * F32(0.005) / Y)
    np.testing.assert_array_equal(
        library(x)[0], level(np.clip(total, F32(-1) / Y, F32(3) / Y), 1, YZ)
    )


@pytest.mark.parametrize("written", ["MatMul", "Gemm"])
def test_a_dense_layer(written):
    values, rows = layer((UNITS, 34)), (5, 34)
    turned = written == "Gemm"
    if not turned:
        values = {**values, "w": values["w"].T.copy()}
    nodes = [
        N("DequantizeLinear", ["w", "ws", "wz"], ["wd"], axis=int(not turned)),
        N("DequantizeLinear", ["b", "bs", "bz"], ["bd"], axis=0),
        *([N("Gemm", ["xd", "wd", "bd"], ["f"], transB=1)] if turned else []),
        *([] if turned else [N("MatMul", ["xd", "wd"], ["m"]), N("Add", ["m", "bd"], ["f"])]),
    ]
    library = built(qdq(nodes, rows, values, 2))
    assert library.report.counts == {"dense_int8": 1}
    x = bytes_of(np.random.default_rng(1), rows, "uint8")
    by_inputs = values["w"].T if turned else values["w"]
    total = (x.astype(int) - XZ) @ by_inputs.astype(int)
    np.testing.assert_array_equal(library(x)[0], by_one_factor(total, values))


def test_a_sum_of_two():
    """A convolution, and what was dequantised beside it: each by its own factor."""
    values = layer((SHAPE[1], SHAPE[1], 3, 3))
    nodes = [
        *conv("xd", "c", pads=[1] * 4),
        N("DequantizeLinear", ["x", "xs", "xz"], ["same"]),
        N("Add", ["c", "same"], ["f"]),
    ]
    library = built(qdq(nodes, SHAPE, values))
    assert library.report.counts == {"conv2d_int8": 1}
    x = bytes_of(np.random.default_rng(1), SHAPE, "uint8")
    beside = (x.astype(int) - XZ).astype(F32) * (X / Y)
    wanted = by_one_factor(sums(x, values["w"], XZ), values, then=lambda found: found + beside)
    np.testing.assert_array_equal(library(x)[0], wanted)


@pytest.mark.parametrize("case", ["read twice", "sigmoid"])
def test_what_stays_as_it_is(case):
    """What is read twice would be computed twice, and a sigmoid is not linear."""
    values = layer((UNITS, SHAPE[1], 1, 1))
    nodes = [*conv("xd", "c"), N("Sigmoid", ["c"], ["f"])]
    if case == "read twice":
        nodes = [*conv("xd", "f"), N("Sigmoid", ["f"], ["other"])]
    outputs = ("y", "other") if case == "read twice" else ("y",)
    model = qdq(nodes, SHAPE, values, outputs=outputs)
    assert quantizers(model) == [pytest.approx(Y)]
    x = bytes_of(np.random.default_rng(1), SHAPE, "uint8")
    stepwise, combined = (
        selfbyoc.build(selfbyoc.from_onnx(model), requantize=how)(x)
        for how in ("stepwise", "combined")
    )
    for one, other in zip(stepwise, combined, strict=True):
        np.testing.assert_array_equal(one, other)


def network():
    """Two layers, one depthwise, a pool and a residual, quantised between all."""
    values = {
        **layer((16, SHAPE[1], 3, 3)),
        **layer((16, 1, 3, 3), 1, "2"),
        **layer((16, 16, 1, 1), 2, "3"),
    }
    values |= {"s2": F32(0.05), "z2": np.uint8(0)}
    values |= {f"bs{n}": values["s2"] * values[f"ws{n}"] for n in "23"}
    between = [
        node
        for name, to in (("c", "q"), ("r", "q2"), ("p", "q3"))
        for node in (
            N("QuantizeLinear", [name, "s2", "z2"], [to]),
            N("DequantizeLinear", [to, "s2", "z2"], [f"{to}d"]),
        )
    ]
    nodes = [
        *conv("xd", "c", pads=[1] * 4), *between[:2],
        *conv("qd", "c2", "2", pads=[1] * 4, group=16), N("Relu", ["c2"], ["r"]), *between[2:4],
        N("MaxPool", ["q2d"], ["p"], kernel_shape=[2, 2]), *between[4:],
        *conv("q3d", "f", "3"),
    ]  # fmt: skip
    return qdq(nodes, (2, 6, 33, 31), values)


def test_a_network_is_onnx_runtimes_to_the_bit():
    """Which fuses the same way, and with 7 bits saturates nowhere."""
    ort = pytest.importorskip("onnxruntime")
    model = network()
    session = ort.InferenceSession(model.SerializeToString())
    library = built(model)
    assert library.report.counts["conv2d_int8"] == 3
    x = bytes_of(np.random.default_rng(1), (2, 6, 33, 31), "uint8")
    np.testing.assert_array_equal(library(x)[0], session.run(None, {"x": x})[0])


def test_it_is_a_choice(tmp_path):
    model = qdq(conv("xd", "f"), SHAPE, layer((UNITS, SHAPE[1], 1, 1)))
    mod = selfbyoc.from_onnx(model)
    with pytest.raises(InputError, match="requantize: expected stepwise or combined, found 'fast'"):
        selfbyoc.build(mod, requantize="fast")
    with pytest.raises(InputError, match="requantize: this module is partitioned already"):
        selfbyoc.build(selfbyoc.partition_for_tefuse(mod), requantize="combined")
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    asked = ["compile", str(path), "--requantize", "combined", "-o", str(tmp_path / "model.so")]
    assert main(asked) == 0
    x = bytes_of(np.random.default_rng(1), SHAPE, "uint8")
    loaded = selfbyoc.load(tmp_path / "model.so")
    np.testing.assert_array_equal(loaded(x)[0], built(model)(x)[0])
