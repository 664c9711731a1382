"""Equal shapes with other constants of one element: they are part of what the function is."""

import numpy as np
import pytest
from against_numpy import normal, normalised, taken
from lrn import meaning

import selfbyoc
from selfbyoc import op
from selfbyoc.ir.emit import emit
from selfbyoc.models.onnx_model import import_onnx
from selfbyoc.partition.generation import ir
from selfbyoc.runtime.tolerance import first_wrong


def clipped(x, weight, high):
    return op.minimum(op.maximum(op.conv2d(x, weight, padding=1), 0.0), high)


def attended(q, scale):
    scores = op.multiply(op.batch_matmul(q, q, transpose_b=True), scale)
    return op.batch_matmul(op.softmax(scores), q)


def test_two_clips():
    def program(x, w, v):
        return clipped(clipped(clipped(x, w, 6.0), v, 1.0), w, 6.0)

    weights = {"w": normal(3, 3, 3, 3), "v": normal(3, 3, 3, 3, seed=1)}
    assert taken(program, {"x": normal(1, 3, 8, 8)}, weights) == {"conv2d": 3}


def test_a_constant_bound_and_one_that_is_an_input():
    """The second is no clip, whatever the first one was read as."""

    def program(x, w, high):
        return clipped(clipped(x, w, 0.5), w, high)

    args = {"x": normal(1, 3, 8, 8), "high": abs(normal(1)) + 0.1}
    assert taken(program, args, {"w": normal(3, 3, 3, 3)}) == {"conv2d": 2}


def test_two_layer_norms():
    def program(x, gamma, beta):
        y = normalised(normalised(x, gamma, beta, 1e-5), gamma, beta, 1.0)
        return normalised(y, gamma, beta, 1e-5)

    weights = {"gamma": normal(16), "beta": normal(16, seed=1)}
    assert taken(program, {"x": normal(4, 16)}, weights) == {"layer_norm": 3}


def test_two_scales_of_attention():
    def program(q):
        return attended(attended(q, 0.5), 0.25)

    assert taken(program, {"q": normal(2, 8, 16)}) == {"attention": 2}


def test_what_is_no_different_stays_one_kernel():
    def program(x, w):
        return clipped(clipped(x, w, 6.0), w, 6.0)

    mod = emit(program, {"x": (1, 3, 8, 8)}, {"w": normal(3, 3, 3, 3)})
    parted = selfbyoc.partition_for_tefuse(mod)
    functions = ir.external_functions(parted).values()
    assert len({str(func.attrs["global_symbol"]) for func in functions}) == 1


@pytest.mark.parametrize("name", ["alpha", "beta", "bias"])
def test_two_lrns(name):
    make = pytest.importorskip("onnx").helper
    attrs = {"size": 3, "alpha": 0.5, "beta": 0.75, "bias": 1.5}
    several = [attrs, {**attrs, name: 0.9}, attrs]
    nodes = [make.make_node("LRN", [f"x{i}"], [f"x{i + 1}"], **a) for i, a in enumerate(several)]
    x, y = (make.make_tensor_value_info(n, 1, (1, 5, 4, 6)) for n in ("x0", "x3"))
    graph = make.make_graph(nodes, "g", [x], [y])
    opset = [make.make_opsetid("", 13)]
    library = selfbyoc.build(import_onnx(make.make_model(graph, opset_imports=opset, ir_version=8)))
    assert library.report.counts == {"lrn": 3}
    given = expected = normal(1, 5, 4, 6)
    for attrs in several:
        expected = meaning(expected, **attrs)
    assert first_wrong(library(given)[0], expected, "float32", 9) is None


def over_zero(x, zero):
    return op.divide(op.relu(op.dense(x, x)), zero)


def attended_over_zero(x, zero):
    scores = op.divide(op.batch_matmul(x, x, transpose_b=True), zero)
    return op.batch_matmul(op.softmax(scores), x)


@pytest.mark.parametrize("zero", [0.0, -0.0])
@pytest.mark.parametrize("shape", [(), (1, 1)])
def test_a_division_by_the_number_zero(shape, zero):
    """TVM raises where it shall write one; the kernel divides by what it reads."""
    x, zero = normal(5, 7), np.full(shape, zero, "float32")
    mod = emit(over_zero, {"x": x.shape, "zero": shape}, {"zero": zero})
    library = selfbyoc.build(mod)
    assert library.report.counts == {"dense": 1}
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(library(x)[0], np.maximum(x @ x.T, 0) / zero)
    mod = emit(attended_over_zero, {"x": (2, 3, 8), "zero": shape}, {"zero": zero})
    library = selfbyoc.build(mod)
    assert library.report.counts == {"attention": 1}
    assert np.isnan(library(normal(2, 3, 8))[0]).all()
