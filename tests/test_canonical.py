"""Importer noise, one rule at a time: what is read away, and what must not be."""

import pytest

from selfbyoc import op
from selfbyoc.ir.emit import emit
from selfbyoc.ir.generation import ir

CONV = {"x": (2, 4, 8, 8), "w": (6, 4, 3, 3)}


def kinds(program, **shapes):
    graph = ir.read(emit(program, {n: (s, "float32") for n, s in shapes.items()})["main"])
    return [call.kind for call in graph]


def conv(x, w):
    return op.conv2d(x, w, padding=1)


def test_bias_through_reshape():
    """ONNX and PyTorch: add(conv, reshape(bias)) (TVM issue 18173)."""

    def program(x, w, b):
        return op.add(conv(x, w), op.reshape(b, shape=(1, 6, 1, 1)))

    assert kinds(program, **CONV, b=(6,)) == ["conv2d", "bias_add"]


def test_bias_through_reshape_and_broadcast_to():
    def program(x, w, b):
        shaped = op.reshape(b, shape=(1, 6, 1, 1))
        return op.add(conv(x, w), op.broadcast_to(shaped, shape=(2, 6, 8, 8)))

    assert kinds(program, **CONV, b=(6,)) == ["conv2d", "bias_add"]


def test_bias_stored_with_four_axes():
    def program(x, w, b):
        return op.add(b, conv(x, w))

    assert kinds(program, **CONV, b=(1, 6, 1, 1)) == ["conv2d", "reshape", "bias_add"]


@pytest.mark.parametrize("shape", [(2, 6, 8, 8), (1, 6, 8, 8), (1, 1, 8, 8), (2, 6, 1, 1), (8,)])
def test_what_is_no_bias(shape):
    """A residual, a map over positions, one value an image, one a column."""
    assert kinds(lambda x, w, b: op.add(conv(x, w), b), **CONV, b=shape) == ["conv2d", "add"]


def test_a_shaped_bias_with_another_reader_stays():
    def program(x, w, b):
        shaped = op.reshape(b, shape=(1, 6, 1, 1))
        return op.multiply(op.add(conv(x, w), shaped), shaped)

    assert kinds(program, **CONV, b=(6,))[-1] == "multiply"
    assert "reshape" in kinds(program, **CONV, b=(6,))


def test_a_computed_vector_is_no_bias():
    def program(x, w, b):
        return op.add(conv(x, w), op.reshape(op.tanh(b), shape=(1, 6, 1, 1)))

    found = kinds(program, **CONV, b=(6,))
    assert found.count("tanh") == 1
    assert found[-1] in ("bias_add", "add")


def test_dense_on_the_transposed_weight():
    def program(x, w):
        return op.dense(x, op.transpose(w, axes=(1, 0)))

    assert kinds(program, x=(3, 8), w=(8, 5)) in (["dense"], ["transpose", "dense"])


def test_silu():
    def program(x):
        return op.multiply(op.sigmoid(x), x)

    assert kinds(program, x=(3, 8)) == ["silu"]


def test_no_silu_of_another_value():
    assert kinds(lambda x, y: op.multiply(x, op.sigmoid(y)), x=(3,), y=(3,)) == [
        "sigmoid",
        "multiply",
    ]


def test_no_silu_where_the_gate_is_read_twice():
    def program(x):
        gate = op.sigmoid(x)
        return op.add(op.multiply(x, gate), gate)

    assert kinds(program, x=(3, 8)) == ["sigmoid", "multiply", "add"]


GELUS = {
    "divide": lambda x: op.multiply(op.multiply(x, op.add(op.erf(op.divide(x, 2**0.5)), 1.0)), 0.5),
    "multiply": lambda x: op.multiply(
        op.multiply(0.5, x), op.add(1.0, op.erf(op.multiply(x, 0.5**0.5)))
    ),
    "half of the gate": lambda x: op.multiply(
        x, op.multiply(op.add(op.erf(op.divide(x, 2**0.5)), 1.0), 0.5)
    ),
}


@pytest.mark.parametrize("form", GELUS)
def test_gelu(form):
    assert kinds(GELUS[form], x=(3, 8)) == ["gelu"]


def test_almost_a_gelu():
    """Another constant is another function."""

    def program(x):
        return op.multiply(op.multiply(x, op.add(op.erf(op.divide(x, 1.5)), 1.0)), 0.5)

    assert "gelu" not in kinds(program, x=(3, 8))


def test_relu_written_as_maximum():
    assert kinds(lambda x: op.maximum(x, 0.0), x=(3, 8)) == ["relu"]
    assert kinds(lambda x: op.maximum(x, 1.0), x=(3, 8)) == ["maximum"]


def test_global_pool_written_as_mean():
    def mean(x):
        return op.mean(x, axis=(2, 3), keepdims=True)

    assert kinds(mean, x=(2, 4, 8, 8)) == ["global_avg_pool2d"]
    assert kinds(lambda x: op.mean(x, axis=(1, 2), keepdims=True), x=(2, 4, 8, 8)) == ["mean"]


def test_batched_matmul_of_a_transposed_matrix():
    def program(a, b):
        return op.batch_matmul(a, b, transpose_b=True)

    graph = ir.read(
        emit(program, {"a": ((2, 3, 8), "float32"), "b": ((2, 5, 8), "float32")})["main"]
    )
    (call,) = graph.ops
    assert (call.kind, call.attrs["transpose_b"]) == ("batch_matmul", True)


def test_attributes_are_the_same_on_both_generations():
    """The eight that a converter needs (WISHES B3)."""

    def program(x, w):
        return op.conv2d(x, w, strides=2, padding=(1, 0), dilation=(1, 2), groups=2)

    (call,) = ir.read(
        emit(program, {"x": ((1, 4, 9, 9), "float32"), "w": ((6, 2, 3, 3), "float32")})["main"]
    ).ops
    assert call.attrs == {
        "strides": (2, 2), "padding": (1, 0, 1, 0), "dilation": (1, 2), "groups": 2,
        "data_layout": "NCHW",
        "kernel_layout": "OIHW", "out_layout": "NCHW", "out_dtype": None,
    }  # fmt: skip
