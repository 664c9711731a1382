"""NonMaxSuppression, and the sizes of what it selects, against ONNX Runtime."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper
from onnx_models import FLOAT, INT64, model, value

import selfbyoc
from selfbyoc.errors import InputError
from selfbyoc.tvm import GENERATION

RELAX = GENERATION == "relax"
ALL = 2**63 - 1  # boxes of a class: what every exporter of `torchvision.ops.nms` writes
MANY, SOME, NONE = 20, 16, 0


def limits(most=ALL, overlap=None, least=None):
    """Inputs of a NonMaxSuppression by name; "" for one that is left out."""
    arrays = {
        "most": None if most is None else np.array([most]),
        "overlap": None if overlap is None else np.array([overlap], "float32"),
        "least": None if least is None else np.array([least], "float32"),
    }
    return {name: array for name, array in arrays.items() if array is not None}


def named(given):
    found = [name if name in given else "" for name in ("most", "overlap", "least")]
    while found and not found[-1]:
        found.pop()
    return found


def drawn(batch, classes, count, seed=0):
    """Boxes that overlap often, and scores below 0 and above."""
    rng = np.random.default_rng(seed)
    corner, size = rng.random((2, batch, count, 2)).astype("float32") * [[[[9]]], [[[4]]]]
    boxes = np.concatenate([corner, corner + size], -1).astype("float32")
    return boxes, rng.standard_normal((batch, classes, count)).astype("float32")


def suppression(after, outputs, given, shape=(1, 2, MANY), **weights):
    batch, classes, count = shape
    inputs = [value("boxes", FLOAT, batch, count, 4), value("scores", FLOAT, batch, classes, count)]
    select = ("NonMaxSuppression", ["boxes", "scores", *named(given)], "selected", {})
    return model([select, *after], inputs, outputs, **given, **weights)


def check(proto, *inputs):
    """One library for all of them; how many rows the first result has at each."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options)
    library = selfbyoc.build(selfbyoc.from_onnx(proto), cache=False)
    rows = []
    for given in inputs:
        names = [each.name for each in proto.graph.input]
        wanted = session.run(None, dict(zip(names, given, strict=True)))
        for found, right in zip(library(*given), wanted, strict=True):
            assert (found.dtype, found.shape) == (right.dtype, right.shape)
            np.testing.assert_array_equal(found, right)
        rows.append(wanted[0].shape[0])
    return rows


SELECTED = value("selected", INT64, None, 3)
AFTER = [
    ("Shape", ["selected"], "shape", {}), ("Size", ["selected"], "size", {}),
    ("Gather", ["shape", "zero"], "count", {}), ("Range", ["zero", "count", "one"], "numbers", {}),
    ("ConstantOfShape", ["shape"], "zeros", {}), ("Reshape", ["selected", "rest"], "flat", {}),
    ("Slice", ["selected", "two", "three", "one_"], "places", {}),
    ("Reshape", ["places", "rest"], "column", {}), ("GatherND", ["scores", "selected"], "best", {}),
    ("ReduceSum", ["selected", "zero_"], "sum", {"keepdims": 0}),
]  # fmt: skip
NUMBERS = {
    "zero": np.array(0), "one": np.array(1), "rest": np.array([-1]), "two": np.array([2]),
    "three": np.array([3]), "one_": np.array([1]), "zero_": np.array([0]),
}  # fmt: skip
ENDS = [
    SELECTED, value("shape", INT64, 2), value("size", INT64), value("numbers", INT64, None),
    value("zeros", FLOAT, None, 3), value("flat", INT64, None), value("column", INT64, None),
    value("best", FLOAT, None), value("sum", INT64, 3),
]  # fmt: skip


def test_sizes_of_what_was_selected():
    """They were those of the most that could be, with stale memory behind; of none an error."""
    proto = suppression(AFTER, ENDS, limits(SOME, 0.5, 0.1), **NUMBERS)
    boxes, scores = drawn(1, 2, MANY)
    some, none = check(proto, (boxes, scores), (boxes, scores - 9))
    assert 0 < some < 2 * SOME
    assert none == 0


GIVEN = [
    limits(),  # the threshold is 0 then, where TVM takes 0.5
    limits(overlap=0.3),  # each box counts, of a score below 0 too
    limits(overlap=0.3, least=-0.5),
    limits(SOME, least=0.0),
    limits(NONE, 0.5, 0.1),  # 0.17 selects all
    limits(None, 0.5),
    limits(-1, 0.5, 0.1),
]


def together(every, *shape):
    """A model of a NonMaxSuppression for each of these limits."""
    nodes, weights, ends = [], {}, []
    for n, given in enumerate(every):
        weights |= {f"{name}_{n}": array for name, array in given.items()}
        names = [f"{name}_{n}" if name else "" for name in named(given)]
        nodes.append(("NonMaxSuppression", ["boxes", "scores", *names], f"selected_{n}", {}))
        ends.append(value(f"selected_{n}", INT64, None, 3))
    batch, classes, count = shape
    inputs = [value("boxes", FLOAT, batch, count, 4), value("scores", FLOAT, batch, classes, count)]
    return model(nodes, inputs, ends, **weights)


def test_limits_and_their_defaults():
    boxes, scores = drawn(2, 3, 17)
    given = (boxes, scores), (boxes, scores - 9), (boxes, np.full_like(scores, -np.inf))
    check(together(GIVEN, 2, 3, 17), *given)


def test_overlaps_as_large_as_the_threshold():
    """ONNX drops a box that overlaps by more; of equal scores the first is the better one."""
    boxes = np.array([[[0, 0, 2, 1], [0, 0, 2, 2], [0, 0, 2, 4], [4, 2, 3, 0], [1, 0, 3, 1]]])
    scores = np.array([[[2, 2, 1, 1, 1]]], "float32")
    every = [limits(overlap=overlap, least=0) for overlap in (0, 0.25, 1 / 3, 0.5)]
    check(together(every, 1, 1, 5), (boxes.astype("float32"), scores))


@pytest.mark.skipif(not RELAX, reason="0.17 sorts a known number of boxes")
def test_open_sizes_and_limits_that_are_data():
    given = limits(SOME, 0.5, 0.1)
    proto = suppression(AFTER, ENDS, given, ("batch", "classes", "count"), **NUMBERS)
    kept = [tensor for tensor in proto.graph.initializer if tensor.name not in given]
    del proto.graph.initializer[:]
    proto.graph.initializer.extend(kept)
    kinds = [("most", INT64), ("overlap", FLOAT), ("least", FLOAT)]
    proto.graph.input.extend(value(name, kind, 1) for name, kind in kinds)
    sizes = [(1, 2, 20), (3, 1, 5), (1, 1, 1), (2, 3, 0)]
    told = [limits(ALL, 0.3, -0.2), limits(3, 0.0, -9), limits(0, 0.5, -9), limits(1, 0.5, 0.1)]
    check(proto, *((*drawn(*s), *each.values()) for s, each in zip(sizes, told, strict=True)))


@pytest.mark.skipif(RELAX, reason="selected by a kernel of ours, whatever their number")
def test_scores_below_0_of_an_open_number_of_boxes_are_refused():
    proto = suppression([], [SELECTED], limits(overlap=0.3), (1, 2, "count"))
    text = "NonMaxSuppression: score_threshold: expected a constant of 0 or more for an open number"
    with pytest.raises(InputError, match=text):
        selfbyoc.from_onnx(proto)


@pytest.mark.parametrize("is_centred", [False, True])
def test_limits_that_are_constants_of_a_branch(is_centred):
    """As the files of torchvision's detectors have them."""
    if not RELAX:
        pytest.skip("0.17's frontend reads no If of sizes that data decide")

    def side(overlap):
        names = ["most", "overlap"]
        node = helper.make_node(
            "NonMaxSuppression", ["boxes", "scores", *names], ["o"], center_point_box=is_centred
        )
        arrays = [numpy_helper.from_array(a, n) for n, a in limits(overlap=overlap).items()]
        return helper.make_graph([node], "side", [], [value("o", INT64, None)], arrays)

    branches = {"then_branch": side(0.1), "else_branch": side(0.9)}
    nodes = [("If", ["c"], "selected", branches), ("Shape", ["selected"], "shape", {})]
    inputs = [
        value("c", onnx.TensorProto.BOOL), value("boxes", FLOAT, 1, MANY, 4),
        value("scores", FLOAT, 1, 2, MANY),
    ]  # fmt: skip
    proto = model(nodes, inputs, [value("selected", INT64, None, None), value("shape", INT64, 2)])
    few, many = check(proto, *((np.array(side), *drawn(1, 2, MANY)) for side in (True, False)))
    assert few < many
