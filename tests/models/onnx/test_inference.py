"""Sizes below 0 in ONNX models: an error that names the node, where onnx's shape inference and ONNX
Runtime end the process at a Slice behind it (onnx 1.21 to 1.23, ONNX Runtime 1.32).
"""

import contextlib
import os
import signal

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_models import FLOAT, INT64, model, random, saved, value

from selfbyoc import build, from_onnx
from selfbyoc.__main__ import main
from selfbyoc.commands.fuzz.like.protos import session, typed
from selfbyoc.common import probes
from selfbyoc.errors import InputError
from selfbyoc.models.onnx import inference
from selfbyoc.models.onnx.folding import contradiction, folded
from selfbyoc.models.onnx.inference import BelowZero, Ended, apart, inferred, may_end
from selfbyoc.models.shapes import fix_shapes

ROWS = {"start": np.array([1]), "stop": np.array([100]), "axis": np.array([2])}
BODY = [value("i", INT64), value("go", TensorProto.BOOL)]


def rows(name, out="y"):
    """All but the first row."""
    return ("Slice", [name, "start", "stop", "axis"], out, {})


def pool(x, out, size, **more):
    return ("MaxPool", [x], out, {"kernel_shape": [size, size], **more})


def of_image(*nodes, height=4, out=4, **weights):
    ends = [value("x", FLOAT, 1, 1, height, 4)], [value("y", FLOAT, 1, 1, *"hw")]
    return model(nodes, *ends, **ROWS, **weights)


def padded(*pads, **more):
    return of_image(
        ("Pad", ["x", "pads"], "p", {"name": "cut", **more}), rows("p"),
        pads=np.array([0, 0, pads[0], 0, 0, 0, pads[1], 0]),
    )  # fmt: skip


def windowed(op="MaxPool", size=7, *between, height=4, **attrs):
    """A window over the image, something after it, and a Slice."""
    kernel = {} if op.startswith("Conv") else {"kernel_shape": [size, size]}
    weight = {"w": np.ones((1, 1, size, size), "float32")} if not kernel else {}
    first = (op, ["x", *weight], "p", {"name": "window", **kernel, **attrs})
    return of_image(first, *between, rows("q" if between else "p"), height=height, **weight)


TO = np.array([1, 1, -3, 4])
LARGER = r"'window': its window of {} is larger than axis 2 of 'x', which is 4; expected {} or more"
CASES = {
    "pad": (
        padded(-3, -3),
        r"Pad 'cut': its pads of -3 and -3 leave -2 of axis 2 of 'x', which is 4; expected 0 or",
    ),
    "a pad of edges": (padded(-3, -2, mode="edge"), "Pad 'cut': its pads of -3 and -2 leave -1"),
    "a pool": (windowed(), "MaxPool " + LARGER.format(7, 7)),
    "an average": (windowed("AveragePool"), "AveragePool " + LARGER.format(7, 7)),
    "a convolution": (windowed("Conv"), "Conv " + LARGER.format(7, 7)),
    "dilated": (windowed("Conv", 3, dilations=[4, 4]), "Conv " + LARGER.format(9, 9)),
    "with padding": (
        windowed("Conv", 9, pads=[1, 0, 1, 0]),
        r"its window of 9 is larger than axis 2 of 'x', which is 4 and 2 of padding; expected 7 or",
    ),
    "of two rows at a time": (windowed("MaxPool", 7, strides=[2, 2]), LARGER.format(7, 7)),
    "through a ReLU": (windowed("MaxPool", 7, ("Relu", ["p"], "q", {})), LARGER.format(7, 7)),
    "transposed": (
        windowed("ConvTranspose", 3, pads=[9, 9, 9, 9]),
        r"ConvTranspose 'window': axis 2 of its result 'p' would be of -12; expected 0 or more",
    ),
    "a size": (
        of_image(("Expand", ["x", "to"], "p", {"name": "wide"}), rows("p"), height=1, to=TO),
        "Expand 'wide': axis 2 of its result 'p' would be of -3; expected 0 or more",
    ),
    "without a slice": (
        of_image(pool("x", "y", 7, name="window"), height=4),
        "MaxPool " + LARGER.format(7, 7),
    ),
    "the second of them": (
        of_image(rows("x", "a"), rows("a", "b"), pool("b", "p", 6), rows("p")),
        "MaxPool 'p': its window of 6 is larger than axis 2 of 'b', which is 2; expected 6 or more",
    ),
    "one axis is known": (windowed(height="h"), "its window of 7 is larger than axis 3 of 'x'"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_leaves_less_than_nothing_is_named(case):
    proto, text = CASES[case]
    with pytest.raises(InputError, match=rf"^the model: .*{text}"):
        from_onnx(proto)


@pytest.mark.parametrize("flags", [{}, {"data_prop": True}, {"strict_mode": True}], ids=str)
def test_inference_takes_flags(flags):
    proto = windowed()
    with pytest.raises(BelowZero, match="'window'"):
        inferred(proto, **flags)
    with pytest.raises(BelowZero, match="'window'"):
        contradiction(proto)


def test_pads_that_are_computed():
    """onnx does not know them; ONNX Runtime computes them, infers again, and ends."""
    proto = padded(-2, -1)
    proto.graph.node[0].input[1] = "twice"
    proto.graph.node.insert(0, helper.make_node("Add", ["pads", "pads"], ["twice"]))
    with pytest.raises(InputError, match="Pad 'cut': its pads of -4 and -2 leave -2 of axis 2"):
        from_onnx(proto)
    with pytest.raises(BelowZero, match="Pad 'cut'"):
        folded(proto)


# ---- bodies


def looped(*nodes, **weights):
    """A Loop of these; what they read of constants is in them."""
    made = [helper.make_node(op, xs, [y], **attrs) for op, xs, y, attrs in nodes]
    arrays = [numpy_helper.from_array(a, name) for name, a in ROWS.items()]
    made.append(helper.make_node("Identity", ["go"], ["on"]))
    ends = [value("on", TensorProto.BOOL), helper.make_empty_tensor_value_info("part")]
    ends[1].type.tensor_type.elem_type = FLOAT
    body = helper.make_graph(made, "body", BODY, ends, arrays)
    loop = ("Loop", ["count", ""], "y", {"body": body})
    ends = [value("x", FLOAT, 1, 1, 4, 4)], [value("y", FLOAT, 3, 1, 1, "h", "w")]
    return model([loop], *ends, count=np.array(3), **weights)


def test_a_loop_around_it():
    with pytest.raises(InputError, match=r"(MaxPool 'p'|Loop 'y'): axis \d of its result '.*-2;"):
        from_onnx(looped(pool("x", "p", 7), rows("p", "part")))


def test_a_function_around_it():
    proto = windowed()
    inner = helper.make_function(
        "mine", "F", ["x"], ["y"],
        [*(helper.make_node("Constant", [], [n], value_ints=a) for n, a in ROWS.items()),
         *proto.graph.node],
        [helper.make_opsetid("", 17)],
    )  # fmt: skip
    del proto.graph.node[:]
    proto.graph.node.append(helper.make_node("F", ["x"], ["y"], domain="mine"))
    proto.functions.append(inner)
    proto.opset_import.append(helper.make_opsetid("mine", 1))
    assert may_end(proto)
    with pytest.raises(InputError, match="would be of"):
        from_onnx(proto)


# ---- sizes that a user gives


def pyramid():
    """Of pictures of any size that three layers fit."""
    return of_image(
        pool("x", "a", 3, strides=[2, 2]), pool("a", "p", 7, name="second"), rows("p"),
        height="rows",
    )  # fmt: skip


def too_small():
    proto = pyramid()
    proto.graph.input[0].type.tensor_type.shape.dim[3].dim_param = "columns"
    return proto


TOO_SMALL = "MaxPool 'second': its window of 7 is larger than axis 2 of 'a', which is 3; expected 7"


def test_a_shape_that_is_too_small():
    proto = too_small()
    with pytest.raises(InputError, match=f"^the model: {TOO_SMALL}"):
        from_onnx(proto, {"x": (1, 1, 8, 32)})
    with pytest.raises(InputError, match=f"^m.onnx: {TOO_SMALL}"):
        fix_shapes(proto, {"x": (1, 1, 8, 32)}, "m.onnx")
    with pytest.raises(InputError, match=f"^the model: {TOO_SMALL}"):
        from_onnx(too_small(), sizes={"rows": 8, "columns": 32})


def test_the_command(tmp_path, capsys):
    path = saved(tmp_path / "m.onnx", too_small())
    command = ["compile", str(path), "-o", str(tmp_path / "m.so"), "--shape"]
    assert main([*command, "x=1x1x8x32"]) != 0
    assert f"m.onnx: {TOO_SMALL}" in capsys.readouterr().err
    assert not (tmp_path / "m.so").exists()


# ---- what is fine stays so


@pytest.mark.parametrize(
    "proto",
    [windowed(size=3), padded(-1, -1), padded(3, 2), windowed(size=4, height=9)],
    ids=range(4),
)
def test_what_fits_has_the_same_shapes(proto):
    known = onnx.shape_inference.infer_shapes(proto)
    assert inferred(proto) == known
    given = np.random.default_rng(0).standard_normal(sizes(known, "x")).astype("float32")
    found = build(from_onnx(proto), cache=False)(given)[0]
    assert found.shape == sizes(known, "y")


def sizes(proto, name):
    """Of a value."""
    values = {v.name: v for v in (*proto.graph.input, *proto.graph.value_info, *proto.graph.output)}
    return tuple(d.dim_value for d in values[name].type.tensor_type.shape.dim)


def test_open_sizes_stay_open():
    proto = onnx.ModelProto.FromString(too_small().SerializeToString())
    assert inferred(proto) == onnx.shape_inference.infer_shapes(too_small())


def test_sizes_below_zero_that_a_file_says_are_open():
    """So exporters of old write what they do not know."""
    proto = of_image(("Relu", ["x"], "p", {}), rows("p"), height=6)
    proto.graph.input[0].type.tensor_type.shape.dim[2].dim_value = -1
    proto.graph.value_info.append(value("p", FLOAT, 1, 1, -1, 4))
    x = random(1, 1, 6, 4)
    found = build(from_onnx(proto, {"x": x.shape}), cache=False)(x)[0]
    np.testing.assert_array_equal(found, np.maximum(x, 0)[:, :, 1:])


def test_what_was_opened_is_looked_at_apart_for_a_slice_alone(monkeypatch):
    """A fork costs as much as inferring a model of 2,000 nodes three times."""
    calls = []
    ask = probes.ask_beside
    monkeypatch.setattr(inference, "ask_beside", lambda *a: calls.append(a) or ask(*a))
    assert not may_end(of_image(pool("x", "y", 3)))
    inferred(of_image(pool("x", "y", 3)), is_opened=True)
    assert len(calls) == 0
    inferred(windowed(size=3), is_opened=True)
    inferred(of_image(pool("x", "y", 3)))
    assert len(calls) == 2


# ---- ends that nobody knows yet


def test_how_a_fork_ended_is_told():
    assert apart(lambda: "fine") == "fine"
    with pytest.raises(Ended, match=r"ended by Aborted \(signal 6\)"):
        apart(lambda: os.kill(os.getpid(), signal.SIGABRT))


@pytest.mark.parametrize("image", [(1, 1), (1,), ()], ids=str)
@pytest.mark.parametrize("op", ["Conv", "MaxPool", "ConvTranspose", "LpPool", "ConvInteger"])
def test_a_window_over_no_image(op, image):
    """onnx 1.18 ends by SIGSEGV at some of them."""
    proto = windowed(op, 3)
    proto.graph.input[0].CopyFrom(value("x", FLOAT, *image))
    for call in (lambda: from_onnx(proto), lambda: fix_shapes(open_copy(proto), {"x": image}, "m")):
        with contextlib.suppress(InputError):
            call()


def open_copy(proto):
    """Of open sizes, which a user gives."""
    copy = onnx.ModelProto.FromString(proto.SerializeToString())
    for dim in copy.graph.input[0].type.tensor_type.shape.dim:
        dim.dim_param = "n"
    return copy


def test_an_end_without_a_slice(monkeypatch):
    def apart(call):
        raise Ended("ended by Aborted (signal 6)")

    monkeypatch.setattr(inference, "apart", apart)
    with pytest.raises(Ended, match="does not survive it: ended by Aborted"):
        inferred(windowed(size=3))


def test_mutants_of_fuzz():
    assert typed(windowed()) is None
    proto = padded(-2, -1)
    assert session(padded(1, 1).SerializeToString()).get_inputs()[0].name == "x"
    pads = numpy_helper.from_array(np.array([0, 0, -3, 0] * 2), "pads")
    proto.graph.initializer[-1].CopyFrom(pads)
    with pytest.raises(Ended, match="signal 6"):
        session(proto.SerializeToString())


def test_shapes_are_inferred_without_weights(monkeypatch):
    """onnx writes down what it looks at, and protobuf writes 2 GB at most."""
    infer, sizes = onnx.shape_inference.infer_shapes, []

    def noted(proto, *args, **flags):
        sizes.append(proto.ByteSize())
        return infer(proto, *args, **flags)

    monkeypatch.setattr(onnx.shape_inference, "infer_shapes", noted)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["z"]), helper.make_node("Relu", ["z"], ["y"])]
    weight = numpy_helper.from_array(random(96, 128), "w")
    x, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", extent])
        for name, extent in (("x", 96), ("y", 128))
    )
    graph = helper.make_graph(nodes, "g", [x], [y], [weight])
    given = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    found = inferred(given)
    assert sizes
    assert max(sizes) < 1000
    assert [v.name for v in found.graph.value_info] == ["z"]
    assert found.graph.initializer == given.graph.initializer
    assert found.graph.input == given.graph.input
