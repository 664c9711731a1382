"""The halves of rotary embedding are one op, on both generations, where they are its halves."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import selfbyoc
from selfbyoc import op
from selfbyoc.errors import CompositeError
from selfbyoc.ir.generation import ir
from selfbyoc.partition.generation import ir as partition
from selfbyoc.tvm import GENERATION

SHAPE = (2, 3, 5, 12)
END = np.iinfo(np.int64).max


def rotary(halves, axis=-1, is_negated=(True, False), step=1, shape=SHAPE, sizes=None):
    """x * cos + Concat of slices, each negated or not, * sin."""
    values = {
        "cos": table(shape, 0),
        "sin": table(shape, 1),
        "axis": ints(axis),
        "step": ints(step),
    }
    nodes = []
    for n, ((begin, end), negated) in enumerate(zip(halves, is_negated, strict=True)):
        values |= {f"b{n}": ints(begin), f"e{n}": ints(end)}
        nodes.append(helper.make_node("Slice", ["x", f"b{n}", f"e{n}", "axis", "step"], [f"s{n}"]))
        nodes.append(helper.make_node("Neg" if negated else "Identity", [f"s{n}"], [f"p{n}"]))
    nodes += [
        helper.make_node("Concat", ["p0", "p1"], ["turned"], axis=axis),
        helper.make_node("Mul", ["x", "cos"], ["a"]),
        helper.make_node("Mul", ["turned", "sin"], ["b"]),
        helper.make_node("Add", ["a", "b"], ["y"]),
    ]  # fmt: skip
    kind = TensorProto.FLOAT
    opened = [(sizes or {}).get(n, extent) for n, extent in enumerate(shape)]
    graph = helper.make_graph(
        nodes, "rotary", [helper.make_tensor_value_info("x", kind, opened)],
        [helper.make_tensor_value_info("y", kind, opened)],
        [numpy_helper.from_array(array, name) for name, array in values.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    onnx.checker.check_model(model)
    return model


def table(shape, seed):
    return np.random.default_rng(seed).standard_normal(shape[-1]).astype("float32")


def ints(*numbers):
    return np.array(numbers, np.int64)


def expected(x, halves, axis=-1, is_negated=(True, False), step=1):
    cut = [np.take(x, range(b, min(e, x.shape[axis]), step), axis) for b, e in halves]
    parts = [-part if negated else part for part, negated in zip(cut, is_negated, strict=True)]
    return x * table(x.shape, 0) + np.concatenate(parts, axis) * table(x.shape, 1)


def rotates(mod):
    graph = ir.read(partition.prepare(mod, None)["main"])
    return [call.kind for call in graph.ops].count("rotate_half")


@pytest.mark.parametrize("halves", [((6, 12), (0, 6)), ((6, END), (0, 6))])
@pytest.mark.parametrize("axis", [-1, 3])
def test_halves(halves, axis):
    mod = selfbyoc.from_onnx(rotary(halves, axis))
    assert rotates(mod) == 1
    close(mod, expected(arrays(SHAPE), halves, axis), arrays(SHAPE))


@pytest.mark.parametrize(
    ("halves", "others"),
    [
        (((0, 6), (6, 12)), {}),
        (((6, 12), (0, 6)), {"is_negated": (False, True)}),
        (((6, 12), (0, 6)), {"is_negated": (True, True)}),
        (((5, 12), (0, 5)), {}),
        (((1, 12), (0, 12)), {"step": 2}),
        (((6, 12), (0, 6)), {"axis": 2, "shape": (2, 3, 12, 4)}),
    ],
)
def test_what_is_another_thing(halves, others):
    shape = others.get("shape", SHAPE)
    mod = selfbyoc.from_onnx(rotary(halves, **others))
    assert rotates(mod) == 0
    others = {name: value for name, value in others.items() if name != "shape"}
    close(mod, expected(arrays(shape), halves, **others), arrays(shape))


@pytest.mark.skipif(GENERATION == "relay", reason="open sizes are Relax's")
def test_of_any_length():
    halves = ((6, 12), (0, 6))
    mod = selfbyoc.from_onnx(rotary(halves, sizes={2: "n"}), sizes={"n": (1, 16)})
    assert rotates(mod) == 1
    library = selfbyoc.build(mod)
    for length in (1, 7):
        x = arrays((2, 3, length, 12))
        np.testing.assert_allclose(library(x)[0], expected(x, halves), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("last", [7, 1])
def test_an_axis_without_halves(last):
    with pytest.raises(CompositeError, match="expected a last axis of two halves"):
        selfbyoc.emit(lambda x: op.rotate_half(x), {"x": (3, last)})


def arrays(shape):
    return np.random.default_rng(2).standard_normal(shape).astype("float32")


@pytest.mark.filterwarnings("ignore::selfbyoc.errors.MatchWarning")
def close(mod, wanted, x):
    np.testing.assert_allclose(selfbyoc.build(mod)(x)[0], wanted, rtol=1e-6, atol=1e-6)
