"""Shapes that ONNX models compute from open sizes are expressions of these sizes once imported."""

import numpy as np
import onnx
import pytest
from onnx_models import FLOAT, INT64, check_at_sizes, model, random, value

import selfbyoc
from selfbyoc import from_onnx
from selfbyoc.errors import InputError
from selfbyoc.tvm import GENERATION

runtime = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.skipif(GENERATION == "relay", reason="Relay's sizes have no names")

ONE = onnx.helper.make_tensor("one", INT64, [1], [1])
N = ("Shape", ["x"], "sizes", {})
LENGTH = [N, ("Gather", ["sizes", "one"], "n", {}), ("Unsqueeze", ["n", "front"], "ns", {})]
BATCH = [("Gather", ["sizes", "zero"], "b", {}), ("Unsqueeze", ["b", "front"], "bs", {})]
NUMBERS = {
    "zero": np.int64(0), "one": np.int64(1), "two": np.int64(2), "front": np.array([0]),
    "ones": np.array([1]), "rest": np.array([-1]), "four": np.array([4]), "halves": np.array([2]),
    "last": np.array([2]), "half": np.float32(0.5),
}  # fmt: skip


def reshape():
    """To [batch, n, 4, 2] and back to [batch, n, -1], as heads are."""
    return [
        *LENGTH, *BATCH,
        ("Concat", ["bs", "ns", "four", "rest"], "apart", {"axis": 0}),
        ("Reshape", ["x", "apart"], "heads", {}),
        ("Transpose", ["heads"], "turned", {"perm": [0, 2, 1, 3]}),
        ("Transpose", ["turned"], "back", {"perm": [0, 2, 1, 3]}),
        ("Concat", ["bs", "ns", "rest"], "together", {"axis": 0}),
        ("Reshape", ["back", "together"], "y", {}),
    ]  # fmt: skip


def rows():
    """All rows of all sentences: batch * n, by a product."""
    return [
        *LENGTH, *BATCH,
        ("Mul", ["bs", "ns"], "many", {}),
        ("Concat", ["many", "rest"], "flat", {"axis": 0}),
        ("Reshape", ["x", "flat"], "y", {}),
    ]  # fmt: skip


def expand():
    """As PyTorch writes `expand(-1, n, -1)`: sizes of -1 are replaced by 1."""
    return [
        *LENGTH,
        ("Concat", ["rest", "ns", "rest"], "wanted", {"axis": 0}),
        ("Shape", ["wanted"], "rank", {}),
        ("ConstantOfShape", ["rank"], "all", {"value": ONE}),
        ("Mul", ["all", "rest"], "negative", {}),
        ("Equal", ["wanted", "negative"], "is_kept", {}),
        ("Where", ["is_kept", "all", "wanted"], "to", {}),
        ("ReduceMean", ["x"], "mean", {"axes": [1]}),
        ("Expand", ["mean", "to"], "wide", {}),
        ("Add", ["wide", "x"], "y", {}),
    ]  # fmt: skip


def causal():
    """A mask of the places before: Range, compared with itself."""
    return [
        *LENGTH,
        ("Range", ["zero", "n", "one"], "places", {}),
        ("Unsqueeze", ["places", "ones"], "rows", {}),
        ("LessOrEqual", ["places", "rows"], "seen", {}),
        ("Transpose", ["x"], "columns", {"perm": [0, 2, 1]}),
        ("MatMul", ["x", "columns"], "scores", {}),
        ("Where", ["seen", "scores", "half"], "masked", {}),
        ("Softmax", ["masked"], "weights", {"axis": -1}),
        ("MatMul", ["weights", "x"], "y", {}),
    ]  # fmt: skip


def middle():
    """From a third of the length on, to one before the end; divided, subtracted."""
    return [
        *LENGTH,
        ("Div", ["ns", "three"], "third", {}),
        ("Sub", ["ns", "ones"], "end", {}),
        ("Slice", ["x", "third", "end", "ones"], "y", {}),
    ]  # fmt: skip


def filled():
    """What has the shape of an input, but for one axis."""
    return [
        *LENGTH, *BATCH,
        ("Concat", ["bs", "ns", "four"], "shape", {"axis": 0}),
        ("ConstantOfShape", ["shape"], "nothing", {}),
        ("Concat", ["x", "nothing"], "y", {"axis": 2}),
    ]  # fmt: skip


def twice():
    """Joined along the open axis, in which the parts are shorter than the whole."""
    return [("Concat", ["x", "x"], "y", {"axis": 1})]


def table():
    """Positions out of a table of 40 rows, which so bounds the length."""
    return [
        *LENGTH,
        ("Slice", ["positions", "front", "ns", "front"], "here", {}),
        ("Add", ["x", "here"], "y", {}),
    ]  # fmt: skip


CASES = {
    f.__name__: f for f in (reshape, rows, expand, causal, middle, filled, twice, table)
}  # fmt: skip


def made(case):
    weights = {**NUMBERS, "three": np.array([3]), "positions": random(40, 8)}
    nodes = CASES[case]()
    used = {name for _, inputs, *_ in nodes for name in inputs}
    weights = {name: array for name, array in weights.items() if name in used}
    rank = 2 if case == "rows" else 3
    batch = 2 if case == "causal" else "batch"
    ends = [value("x", FLOAT, batch, "n", 8)], [value("y", FLOAT, *[None] * rank)]
    return model(nodes, *ends, **weights)


# Of causal, one product has so few columns that no composite takes it at every length.
@pytest.mark.filterwarnings("ignore::selfbyoc.errors.FallbackWarning")
@pytest.mark.parametrize("case", CASES)
def test_shapes_are_expressions_of_open_sizes(case):
    sizes = (
        (2 if case == "causal" else batch, n) for batch, n in ((1, 2), (2, 1), (3, 7), (2, 37))
    )
    check_at_sizes(made(case), *((batch, n, 8) for batch, n in sizes), atol=1e-5)


def test_a_table_bounds_the_size_that_it_is_cut_to():
    library = selfbyoc.build(from_onnx(made("table")), cache=False)
    with pytest.raises(InputError, match="size n: expected at most 40, found 41"):
        library(random(1, 41, 8))


def test_what_has_to_be_equal_is_looked_at():
    """Two inputs of two names, added up: one size of both; a call with two is an error."""
    ends = [value("x", FLOAT, "n", 8), value("y", FLOAT, "m", 8)], [value("z", FLOAT, None, 8)]
    library = selfbyoc.build(from_onnx(model([("Add", ["x", "y"], "z", {})], *ends)), cache=False)
    (found,) = library(random(5, 8), random(5, 8))
    np.testing.assert_allclose(found, 2 * random(5, 8), rtol=1e-6)
    with pytest.raises(InputError, match=r"size n: expected one size, found 5 .* and 3 in axis 0"):
        library(random(5, 8), random(3, 8))


def test_a_size_that_follows_from_others():
    """A cache of m places and n new ones: a mask of as many as both."""
    nodes = [("Concat", ["old", "new"], "all", {"axis": 0}), ("Mul", ["all", "mask"], "y", {})]
    inputs = [value("mask", FLOAT, "p"), value("old", FLOAT, "m"), value("new", FLOAT, "n")]
    library = selfbyoc.build(
        from_onnx(model(nodes, inputs, [value("y", FLOAT, None)])), cache=False
    )
    old, new, mask = random(3), random(2), random(5)
    np.testing.assert_allclose(library(mask, old, new)[0], np.concatenate([old, new]) * mask)
    wrong = r"size m \+ n: expected 5, found 4 in axis 0 of input 'mask'"
    with pytest.raises(InputError, match=wrong):
        library(random(4), old, new)


def test_conditions_on_sizes_choose():
    """`n if n > 4 else 4`, which no number is."""
    nodes = [
        *LENGTH,
        ("Greater", ["ns", "four"], "is_long", {}),
        ("Where", ["is_long", "ns", "four"], "at_least", {}),
        ("Concat", ["at_least", "ones"], "shape", {"axis": 0}),
        ("ConstantOfShape", ["shape"], "y", {}),
    ]
    used = {name for _, inputs, *_ in nodes for name in inputs}
    weights = {name: array for name, array in NUMBERS.items() if name in used}
    proto = model(nodes, [value("x", FLOAT, 1, "n")], [value("y", FLOAT, None, 1)], **weights)
    library = selfbyoc.build(from_onnx(proto), cache=False)
    for n in (1, 4, 9):
        (found,) = library(random(1, n))
        assert found.shape == (max(n, 4), 1)
        assert not found.any()


def test_an_attention_block_with_computed_shapes_is_one_kernel():
    nodes = [
        *LENGTH, *BATCH,
        ("Concat", ["bs", "ns", "halves", "rest"], "apart", {"axis": 0}),
        ("Concat", ["bs", "ns", "rest"], "together", {"axis": 0}),
    ]  # fmt: skip
    turned = {"q": [0, 2, 1, 3], "k": [0, 2, 3, 1], "v": [0, 2, 1, 3]}
    for name in "qkv":
        nodes += [
            ("MatMul", ["x", f"w{name}"], f"{name}0", {}),
            ("Reshape", [f"{name}0", "apart"], f"{name}1", {}),
            ("Transpose", [f"{name}1"], name, {"perm": turned[name]}),
        ]  # fmt: skip
    nodes += [
        ("MatMul", ["q", "k"], "scores", {}),
        ("Mul", ["scores", "half"], "scaled", {}),
        ("Softmax", ["scaled"], "weights", {"axis": -1}),
        ("MatMul", ["weights", "v"], "heads", {}),
        ("Transpose", ["heads"], "turned", {"perm": [0, 2, 1, 3]}),
        ("Reshape", ["turned", "together"], "y", {}),
    ]
    used = {name for _, inputs, *_ in nodes for name in inputs}
    numbers = {name: array for name, array in NUMBERS.items() if name in used}
    ends = [value("x", FLOAT, "batch", "n", 16)], [value("y", FLOAT, None, None, 16)]
    weights = {f"w{name}": random(16, 16) / 4 for name in "qkv"}
    proto = model(nodes, *ends, **numbers, **weights)
    library = selfbyoc.build(from_onnx(proto))
    assert library.report.counts["attention_of_heads"] == 1
    session = runtime.InferenceSession(proto.SerializeToString())
    for batch, n in ((1, 1), (2, 7), (1, 33)):
        x = random(batch, n, 16)
        np.testing.assert_allclose(
            library(x)[0], session.run(None, {"x": x})[0], rtol=1e-4, atol=1e-5
        )


def test_what_is_read_by_axes_that_are_data_is_no_slice_of_the_first_ones():
    """Ends are known, which axes they are of is not."""
    nodes = [*LENGTH, ("Slice", ["x", "front", "ns", "axes"], "y", {})]
    used = {name for _, inputs, *_ in nodes for name in inputs}
    numbers = {name: array for name, array in NUMBERS.items() if name in used}
    ends = [value("x", FLOAT, 5, "n"), value("axes", INT64, 1)], [value("y", FLOAT, None, None)]
    proto = model(nodes, *ends, **numbers)
    x, axes = random(5, 3), np.array([0])
    (wanted,) = runtime.InferenceSession(proto.SerializeToString()).run(
        None, {"x": x, "axes": axes}
    )
    np.testing.assert_array_equal(selfbyoc.build(from_onnx(proto), cache=False)(x, axes)[0], wanted)


def test_sizes_themselves_are_results():
    nodes = [N, ("Mod", ["sizes", "minus"], "y", {"fmod": 1}), ("Identity", ["sizes"], "z", {})]
    ends = [value("x", FLOAT, "b", "n")], [value("y", INT64, 2), value("z", INT64, 2)]
    proto = model(nodes, *ends, minus=np.array([-2]))
    for found, wanted in zip(
        selfbyoc.build(from_onnx(proto), cache=False)(random(5, 3)), ([1, 1], [5, 3]), strict=True
    ):
        np.testing.assert_array_equal(found, wanted)
