"""Einsum as the product of matrices that it is, Col2Im as a transposed convolution."""

import numpy as np
import pytest

import selfbyoc
from selfbyoc.runtime.tolerance import first_wrong
from selfbyoc.tvm import GENERATION

onnx = pytest.importorskip("onnx", reason="the onnx extra is not installed")
from onnx import TensorProto, helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

from selfbyoc.models.onnx_model import graph_of  # noqa: E402

RNG = np.random.default_rng(0)
SIZES = {"b": 2, "g": 3, "h": 5, "i": 7, "j": 6, "d": 9, "e": 4}


def model(equation, shapes, weight=None):
    """One node; the last operand may be a weight."""
    names = ["x", "y"]
    node = helper.make_node("Einsum", names, ["z"], equation=equation)
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in zip(names, shapes, strict=True)
    ]
    made = [] if weight is None else [onnx.numpy_helper.from_array(weight, "y")]
    result = helper.make_tensor_value_info("z", TensorProto.FLOAT, None)
    graph = helper.make_graph([node], "g", inputs[: 2 - len(made)], [result], made)
    return onnx.shape_inference.infer_shapes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    )


def shapes_of(equation):
    terms = equation.replace(" ", "").partition("->")[0].split(",")
    return [[SIZES[n] for n in term.replace("...", "bg")] for term in terms]


EQUATIONS = [
    ("bghid,bghjd->bghij", "matmul"),  # the scores of an attention
    ("b g h i j, b g h j d -> b g h i d", "matmul"),
    ("bhid,bhjd->bhji", "matmul"),
    ("ihd,jhd->hij", "matmul"),
    ("bihd,hjd->bihj", "matmul"),  # positions beside an attention, for each row of an image
    ("bhidg,bhjgd->bihj", "matmul"),  # adds up along two axes
    ("i,i->", "matmul"),
    ("bi,bi->b", "matmul"),
    ("i,ij->j", "matmul"),
    ("bij,j->bi", "matmul"),
    ("bgi,jd->gji", "multiply"),  # of what is added up first
    ("i,j->ij", "multiply"),
    ("bi,hb->hbi", "multiply"),
    ("...ij,...jd->...id", "matmul"),
    ("...ij,jd->id...", "matmul"),
    ("bij,bjd", "matmul"),
]


@pytest.mark.parametrize(("equation", "kind"), EQUATIONS)
def test_products(equation, kind):
    shapes = shapes_of(equation)
    mod = selfbyoc.from_onnx(model(equation, shapes))
    kinds = [call.kind for call in graph_of(mod)]
    products = {"matmul": {"batch_matmul", "matmul", "dense"}, "multiply": {"multiply"}}
    assert products[kind] & set(kinds), kinds
    x, y = (RNG.standard_normal(shape, dtype="float32") for shape in shapes)
    (found,) = selfbyoc.build(mod)(x, y)
    wanted = np.einsum(equation, x.astype("float64"), y.astype("float64"))
    assert first_wrong(found, wanted, "float32", 400) is None


@pytest.mark.parametrize("equation", ["bid,dhj->bihj", "bid,hjd->bhij", "bihd,hdj->bij"])
def test_weights_are_matrices(equation):
    """Projections of many heads at once: a dense layer, of whatever order its weight has."""
    shapes = shapes_of(equation)
    weight = RNG.standard_normal(shapes[1], dtype="float32")
    library = selfbyoc.build(selfbyoc.from_onnx(model(equation, shapes, weight)))
    assert [r.composite for r in library.report.matched] == ["dense"]
    x = RNG.standard_normal(shapes[0], dtype="float32")
    wanted = np.einsum(equation, x.astype("float64"), weight.astype("float64"))
    assert first_wrong(library(x)[0], wanted, "float32", 400) is None


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [("bii,bij->bj", [[2, 7, 7], [2, 7, 6]]), ("bij,bjd->bid", [[1, 7, 6], [2, 6, 5]])],
)
def test_others_stay_as_they_are(equation, shapes):
    """A diagonal; a label of one element here and of two there."""
    x, y = (RNG.standard_normal(shape, dtype="float32") for shape in shapes)
    (found,) = selfbyoc.build(selfbyoc.from_onnx(model(equation, shapes)))(x, y)
    assert first_wrong(found, np.einsum(equation, x, y), "float32", 400) is None


@pytest.mark.skipif(GENERATION == "relay", reason="0.17 has no names for open sizes")
def test_open_sizes():
    """A length that nobody gives, on both sides of a product of heads."""
    proto = model("bhid,bhjd->bhij", [[2, 3, "n", 8], [2, 3, "n", 8]])
    library = selfbyoc.build(selfbyoc.from_onnx(proto, sizes={"n": (1, 64)}))
    x, y = (RNG.standard_normal((2, 3, 11, 8), dtype="float32") for _ in range(2))
    wanted = np.einsum("bhid,bhjd->bhij", x, y)
    assert first_wrong(library(x, y)[0], wanted, "float32", 8) is None


@pytest.mark.parametrize(
    ("image", "window", "attrs"),
    [
        ((5, 7), (2, 3), {}),
        ((9, 8), (3, 3), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
        ((8, 9), (3, 2), {"strides": [3, 2], "pads": [1, 0, 0, 1], "dilations": [1, 2]}),
    ],
)
def test_windows_added_up_to_an_image(image, window, attrs):
    """With what no window reaches at the end of an image, too."""
    places = 1
    for n in range(2):
        room = image[n] + sum(attrs.get("pads", [0] * 4)[n::2])
        room -= attrs.get("dilations", [1, 1])[n] * (window[n] - 1) + 1
        places *= room // attrs.get("strides", [1, 1])[n] + 1
    shape = [2, 3 * window[0] * window[1], places]
    sizes = [
        onnx.numpy_helper.from_array(np.asarray(each), name)
        for each, name in ((image, "i"), (window, "w"))
    ]
    graph = helper.make_graph(
        [helper.make_node("Col2Im", ["x", "i", "w"], ["y"], **attrs)], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3, *image])], sizes,
    )  # fmt: skip
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    x = RNG.standard_normal(shape, dtype="float32")
    (found,) = selfbyoc.build(selfbyoc.from_onnx(proto))(x)
    (wanted,) = ReferenceEvaluator(proto).run(None, {"x": x})
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)
