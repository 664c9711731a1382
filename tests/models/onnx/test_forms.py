"""Ops that ONNX's importers take apart or lower: read as the one op that they are."""

import numpy as np
import pytest

import selfbyoc
from selfbyoc.errors import InputError
from selfbyoc.runtime.tolerance import first_wrong
from selfbyoc.tvm import GENERATION

onnx = pytest.importorskip("onnx", reason="the onnx extra is not installed")
from onnx import TensorProto, helper  # noqa: E402

from selfbyoc.models.onnx_model import graph_of, import_onnx  # noqa: E402

RNG = np.random.default_rng(0)


def build(nodes, shape, out, opset, **weights):
    """An ONNX model of one input and one output as an IRModule."""
    tensors = [
        onnx.numpy_helper.from_array(np.asarray(a, "float32"), n) for n, a in weights.items()
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, out)
    graph = helper.make_graph(nodes, "g", [x], [y], tensors)
    return import_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)]))


def kinds(mod):
    return [call.kind for call in graph_of(mod)]


def run(mod, shape):
    library, x = selfbyoc.build(mod), RNG.standard_normal(shape, dtype="float32")
    return library, x, library(x)[0]


def clip_model(opset, low, high):
    weight = RNG.standard_normal((5, 3, 1, 1), dtype="float32")
    if opset < 11:
        bounds = {k: v for k, v in (("min", low), ("max", high)) if v is not None}
        nodes, weights = [helper.make_node("Clip", ["c"], ["y"], **bounds)], {}
    else:
        weights = {n: v for n, v in (("lo", low), ("hi", high)) if v is not None}
        names = [n if n in weights else "" for n in ("lo", "hi")]
        nodes = [helper.make_node("Clip", ["c", *names], ["y"])]
    nodes.insert(0, helper.make_node("Conv", ["x", "w"], ["c"]))
    return build(nodes, (1, 3, 5, 7), (1, 5, 5, 7), opset, w=weight, **weights), weight[:, :, 0, 0]


@pytest.mark.parametrize("opset", [6, 13])
@pytest.mark.parametrize(("low", "high"), [(0.0, 6.0), (-0.5, 0.5)])
def test_clip(opset, low, high):
    """ReLU6 of MobileNetV2, with its bounds as attributes and as inputs."""
    mod, weight = clip_model(opset, low, high)
    assert kinds(mod) == ["conv2d", "clip"]
    library, x, found = run(mod, (1, 3, 5, 7))
    assert [r.composite for r in library.report.matched] == ["conv2d"]
    expected = np.clip(np.einsum("oc,ncyx->noyx", weight, x), low, high)
    assert first_wrong(found, expected, "float32", 3) is None


def test_a_clip_with_one_bound_is_a_relu():
    mod, _ = clip_model(13, 0.0, None)
    assert kinds(mod) == ["conv2d", "relu"]


@pytest.mark.parametrize(("low", "high"), [(0.5, None), (None, 1.5)])
def test_a_clip_with_one_bound(low, high):
    x = np.linspace(-3, 3, 7, dtype="float32")
    weights = {n: v for n, v in (("lo", low), ("hi", high)) if v is not None}
    names = [n if n in weights else "" for n in ("lo", "hi")]
    mod = build([helper.make_node("Clip", ["x", *names], ["y"])], (7,), (7,), 13, **weights)
    np.testing.assert_array_equal(selfbyoc.build(mod)(x)[0], np.clip(x, low, high))


@pytest.mark.parametrize("opset", [6, 13])
def test_a_clip_whose_limits_cross(opset):
    """ONNX gives the upper limit, TVM 0.17 the lower one."""
    mod, _ = clip_model(opset, 2.0, -1.0)
    library, _, found = run(mod, (1, 3, 5, 7))
    assert library.report.counts == {"conv2d": 1}
    np.testing.assert_array_equal(found, np.full((1, 5, 5, 7), -1, "float32"))


SAME = {"upper": (b"SAME_UPPER", (1, 0, 1, 1)), "lower": (b"SAME_LOWER", (1, 1, 1, 0))}


@pytest.mark.parametrize("name", SAME)
@pytest.mark.parametrize("kind", ["MaxPool", "AveragePool", "LpPool"])
def test_pools_that_are_padded_to_the_same_size(kind, name):
    """0.27's frontend had fewer windows under SAME_LOWER."""
    auto, (top, left, bottom, right) = SAME[name]
    shape, out = (1, 3, 9, 11), (1, 3, 5, 6)
    pool = helper.make_node(
        kind, ["x"], ["y"], kernel_shape=[3, 2], strides=[2, 2], auto_pad=auto.decode()
    )
    _, x, found = run(build([pool], shape, out, 13), shape)
    fill = -np.inf if kind == "MaxPool" else np.nan if kind == "AveragePool" else 0
    wide = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=fill)
    views = np.lib.stride_tricks.sliding_window_view(wide, (3, 2), axis=(2, 3))[:, :, ::2, ::2]
    means = {"MaxPool": np.max, "AveragePool": np.nanmean, "LpPool": np.linalg.norm}
    flat = views.reshape(*views.shape[:4], 6)
    assert first_wrong(found, means[kind](flat, axis=-1), "float32", 6) is None


@pytest.mark.parametrize("name", SAME)
@pytest.mark.parametrize("told", [True, False])
def test_convolutions_that_are_padded_to_the_same_size(told, name):
    """Their kernel pads, 0.27 did in front of it. The window may be the weight's alone."""
    auto, (top, left, bottom, right) = SAME[name]
    shape, out = (1, 3, 9, 11), (1, 5, 5, 6)
    attrs = {"strides": [2, 2], "auto_pad": auto.decode()}
    attrs |= {"kernel_shape": [3, 2]} if told else {}
    w = np.random.default_rng(2).standard_normal((5, 3, 3, 2)).astype("float32")
    conv = helper.make_node("Conv", ["x", "w"], ["y"], **attrs)
    library, x, found = run(build([conv], shape, out, 13, w=w), shape)
    assert library.report.counts == {"conv2d": 1}
    assert library.report.left == {}
    wide = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    views = np.lib.stride_tricks.sliding_window_view(wide, (3, 2), axis=(2, 3))[:, :, ::2, ::2]
    assert first_wrong(found, np.einsum("nchwkl,ockl->nohw", views, w), "float32", 18) is None


@pytest.mark.skipif(GENERATION == "relay", reason="0.17 reads it right")
def test_a_pool_of_an_image_of_no_known_size():
    attrs = {"kernel_shape": [2, 2], "auto_pad": "SAME_LOWER", "strides": [2, 2]}
    pool = helper.make_node("MaxPool", ["x"], ["y"], **attrs)
    assert kinds(build([pool], ("n", 3, 7, 7), ("n", 3, 4, 4), 13)) == ["max_pool2d"]
    with pytest.raises(InputError, match="auto_pad is SAME_LOWER, of an image of no known size"):
        build([pool], (1, 3, "h", 7), (1, 3, "h", 4), 13)


@pytest.mark.parametrize("kind", ["Softplus", "LogSoftmax"])
def test_large_numbers(kind):
    x = np.array([[-200.0, -3.0, 0.0, 200.0], [1.0, 2.0, -4.0, 0.5]], "float32")
    mod = build([helper.make_node(kind, ["x"], ["y"])], x.shape, x.shape, 13)
    wanted = {
        "Softplus": np.logaddexp(x.astype("float64"), 0),
        "LogSoftmax": x - np.logaddexp.reduce(x.astype("float64"), axis=1, keepdims=True),
    }[kind]
    assert first_wrong(selfbyoc.build(mod)(x)[0], wanted, "float32", 4) is None


@pytest.mark.parametrize("form", ["relu", "clip", "clip from above", "maximum"])
def test_max_and_min_of_two(form):
    """Relax's importer stacks them and reduces."""
    weight = RNG.standard_normal((5, 3, 1, 1), dtype="float32")
    node = helper.make_node
    wanted, numpy, *nodes = {
        "relu": (["relu"], lambda a: np.maximum(a, 0), node("Max", ["c", "zero"], ["y"])),
        "clip": (
            ["clip"], lambda a: np.clip(a, 0, 6),
            node("Max", ["zero", "c"], ["d"]), node("Min", ["d", "six"], ["y"]),
        ),
        "clip from above": (
            ["clip"], lambda a: np.clip(a, 0, 6),
            node("Min", ["six", "c"], ["d"]), node("Max", ["d", "zero"], ["y"]),
        ),
        "maximum": (
            ["negative", "maximum"], lambda a: np.abs(a),
            node("Neg", ["c"], ["d"]), node("Max", ["d", "c"], ["y"]),
        ),
    }[form]  # fmt: skip
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"]), *nodes]
    mod = build(nodes, (1, 3, 5, 7), (1, 5, 5, 7), 13, w=weight, zero=0.0, six=6.0)
    assert [kind for kind in kinds(mod) if kind != "conv2d"] == wanted
    library, x, found = run(mod, (1, 3, 5, 7))
    assert [r.composite for r in library.report.matched] == ["conv2d"]
    expected = numpy(np.einsum("oc,ncyx->noyx", weight[:, :, 0, 0], x))
    assert first_wrong(found, expected, "float32", 3) is None


@pytest.mark.skipif(GENERATION == "relay", reason="0.17's importer clips to nan")
def test_a_bound_that_is_no_number_stays():
    """ONNX takes it for no bound: nothing is read there."""
    mod, _ = clip_model(13, float("nan"), 6.0)
    assert "clip" not in kinds(mod)


def layer_norm_nodes(form):
    if form == "op":
        return [
            helper.make_node("LayerNormalization", ["x", "g", "b"], ["y"], axis=-1, epsilon=1e-5)
        ]
    square = ("Pow", ["d", "two"]) if form == "power" else ("Mul", ["d", "d"])
    return [
        helper.make_node("ReduceMean", ["x"], ["m"], axes=[-1]),
        helper.make_node("Sub", ["x", "m"], ["d"]),
        helper.make_node(square[0], square[1], ["s"]),
        helper.make_node("ReduceMean", ["s"], ["v"], axes=[-1]),
        helper.make_node("Add", ["v", "eps"], ["e"]),
        helper.make_node("Sqrt", ["e"], ["r"]),
        helper.make_node("Div", ["d", "r"], ["n"]),
        helper.make_node("Mul", ["n", "g"], ["p"]),
        helper.make_node("Add", ["p", "b"], ["y"]),
    ]


def layer_norm_model(form, width=37, **changed):
    weights = {
        "g": RNG.standard_normal(width), "b": RNG.standard_normal(width),
        "two": np.float32(2), "eps": np.float32(1e-5),
    }  # fmt: skip
    shape = (2, 5, width)
    return build(layer_norm_nodes(form), shape, shape, 17, **{**weights, **changed}), weights


@pytest.mark.parametrize("form", ["op", "power", "product"])
def test_layer_norm(form):
    """Written as one op or in steps: the same composite."""
    mod, weights = layer_norm_model(form)
    assert kinds(mod) == ["layer_norm"]
    library, x, found = run(mod, (2, 5, 37))
    assert [r.composite for r in library.report.matched] == ["layer_norm"]
    wide = x.astype("float64")
    centred = wide - wide.mean(-1, keepdims=True)
    normal = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    expected = normal * weights["g"] + weights["b"]
    assert first_wrong(found, expected, "float32", 37) is None


@pytest.mark.parametrize("changed", [{"two": np.float32(3)}, {"g": RNG.standard_normal((5, 37))}])
def test_what_is_no_layer_norm(changed):
    mod, _ = layer_norm_model("power", **changed)
    assert "layer_norm" not in kinds(mod)


def test_a_mean_that_is_read_elsewhere():
    """The steps stay: taken away, the other reader would have nothing."""
    nodes = layer_norm_nodes("power")
    nodes[-1].output[0] = "q"
    more = [helper.make_node("Add", ["q", "m"], ["y"])]
    weights = {"g": RNG.standard_normal(37), "b": RNG.standard_normal(37), "two": 2.0, "eps": 1e-5}
    mod = build([*nodes, *more], (2, 5, 37), (2, 5, 37), 17, **weights)
    assert "layer_norm" not in kinds(mod)


@pytest.mark.parametrize("shape", [(2, 3, 7), (2, 3, 5, 4), (1, 1, 1), (1, 1, 1, 1)])
def test_an_instance_norm(shape):
    """Relax's importer writes it with `variance`, which reads x alone: no layer norm."""
    scale, shift = RNG.standard_normal((2, shape[1]))
    nodes = [helper.make_node("InstanceNormalization", ["x", "s", "b"], ["y"], epsilon=0.01)]
    mod = build(nodes, shape, shape, 17, s=scale, b=shift)
    assert "layer_norm" not in kinds(mod)
    _, x, found = run(mod, shape)
    axes, column = tuple(range(2, len(shape))), (-1, *(1 for _ in shape[2:]))
    centred = x - x.mean(axes, keepdims=True, dtype="float64")
    normal = centred / np.sqrt((centred**2).mean(axes, keepdims=True) + 0.01)
    wanted = normal * scale.reshape(column) + shift.reshape(column)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5)
