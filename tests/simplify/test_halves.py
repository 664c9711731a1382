"""Models of float16 and bfloat16: halves are storage, kernels compute in float32."""

import math

import ml_dtypes
import numpy as np
import pytest
from harness import cpus, needs_llvm

import selfbyoc
from selfbyoc import emit, op
from selfbyoc.errors import ModelWarning
from selfbyoc.machine import machine
from selfbyoc.tvm import make_target

F32 = np.float32
KINDS = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
HALVES = [
    "float16",
    pytest.param(
        "bfloat16",
        marks=needs_llvm(11, "bfloat16"),
    ),
]


def network(x, w1, b1, w2, g, b, w3):
    """A convolution, a pool, rows that are normalised, a dense layer, and a softmax."""
    y = op.relu(op.bias_add(op.conv2d(x, w1, padding=1), b1))
    y = op.max_pool2d(op.conv2d(y, w2, strides=2), pool_size=2, strides=2)
    y = op.layer_norm(op.reshape(y, shape=(6, 24)), g, b)
    return op.softmax(op.dense(y, w3))


SHAPES = {
    "x": (2, 5, 9, 9), "w1": (8, 5, 3, 3), "b1": (8,), "w2": (18, 8, 2, 2), "g": (24,), "b": (24,),
    "w3": (48, 24),
}  # fmt: skip


def given(shapes, dtype):
    rng = np.random.default_rng(0)
    return {n: (rng.standard_normal(s) * 0.3).astype(KINDS[dtype]) for n, s in shapes.items()}


def built(program, arrays, dtype, target=None, free=("x",)):
    types = {n: (a.shape, dtype) for n, a in arrays.items()}
    held = {n: a.astype(KINDS.get(dtype, dtype)) for n, a in arrays.items() if n not in free}
    return selfbyoc.build(emit(program, types, held), target)


def as_floats(program, arrays, free=("x",)):
    """What float32 makes of the same numbers."""
    wide = {n: a.astype(F32) for n, a in arrays.items()}
    library = built(program, wide, "float32", free=free)
    return library(*(wide[n] for n in free)), library.report.counts


@pytest.mark.parametrize("target", cpus(None, "llvm -mcpu=haswell"))
@pytest.mark.parametrize("dtype", HALVES)
def test_a_network_of_halves_is_rounded_once(dtype, target):
    arrays = given(SHAPES, dtype)
    library = built(network, arrays, dtype, target)
    (found,) = library(arrays["x"])
    (wanted,), counts = as_floats(network, arrays)
    assert str(found.dtype) == dtype
    assert library.report.counts == counts
    # A CPU that multiplies bfloat16 rounds what a product reads, too.
    cpu = machine(make_target(target or selfbyoc.host_target()))
    rounds_twice = dtype == "bfloat16" and bool(cpu.products_of_bfloat16)
    bits = {"float16": 11, "bfloat16": 8}[dtype] - rounds_twice
    np.testing.assert_allclose(found.astype(F32), wanted, rtol=1.01 * 2.0**-bits, atol=1e-6)


@pytest.mark.parametrize("dtype", HALVES)
def test_weights_of_dense_layers_stay_halves(dtype, tmp_path):
    shapes = {"x": (3, 512), "w": (768, 512)}
    arrays = given(shapes, dtype)
    library = built(lambda x, w: op.dense(x, w), arrays, dtype)
    (wanted,), _ = as_floats(lambda x, w: op.dense(x, w), arrays)
    assert library.report.counts == {"dense": 1}
    np.testing.assert_allclose(library(arrays["x"])[0].astype(F32), wanted, rtol=0.01, atol=1e-3)
    path = tmp_path / "halves.so"
    library.export_library(path)
    assert path.stat().st_size < arrays["w"].size * 3  # 2 bytes each, and the code


def test_what_a_model_rounds_is_rounded():
    """A cast to halves and back is what somebody wants. Of bfloat16 TVM drops it."""

    def program(x):
        return op.cast(op.cast(op.multiply(x, 3.0), dtype="float16"), dtype="float32")

    x = np.random.default_rng(1).standard_normal((5, 33)).astype(F32)
    library = selfbyoc.build(emit(program, {"x": (x.shape, "float32")}))
    wanted = (x * F32(3)).astype("float16").astype(F32)
    np.testing.assert_array_equal(library(x)[0], wanted)


def test_several_results_and_numbers():
    def program(x, y):
        both = op.concatenate([x, op.exp(y)], axis=1)
        parts = op.split(both, indices_or_sections=2, axis=1)
        return (
            parts[0], op.cast(op.add(parts[1], 2.0), dtype="float32"), op.cast(x, dtype="int32")
        )  # fmt: skip

    shapes = {"x": (4, 7), "y": (4, 9)}
    arrays = {n: a * 9 for n, a in given(shapes, "float16").items()}
    library = built(program, arrays, "float16", free=("x", "y"))
    first, second, third = library(*arrays.values())
    whole = np.concatenate([arrays["x"].astype(F32), np.exp(arrays["y"].astype(F32))], axis=1)
    np.testing.assert_allclose(first, whole[:, :8].astype("float16"), rtol=1e-3)
    np.testing.assert_allclose(second, whole[:, 8:] + 2, rtol=1e-6)
    assert second.dtype == np.float32
    np.testing.assert_array_equal(third, arrays["x"].astype("int32"))


def test_attention_of_halves_is_a_kernel():
    def program(q, k, v):
        scores = op.multiply(op.batch_matmul(q, k, transpose_b=True), 0.25)
        return op.batch_matmul(op.softmax(scores), v)

    shapes = {"q": (6, 19, 16), "k": (6, 23, 16), "v": (6, 23, 16)}
    arrays = given(shapes, "float16")
    library = built(program, arrays, "float16", free=tuple(shapes))
    (wanted,), counts = as_floats(program, arrays, tuple(shapes))
    assert counts == library.report.counts == {"attention": 1}
    found = library(*arrays.values())[0]
    np.testing.assert_allclose(found.astype(F32), wanted, rtol=2.0**-10, atol=1e-6)


def test_a_file_as_converters_leave_it():
    """The casts of its inputs behind their readers; sqrt(2) as float16 has it is GELU's."""
    onnx = pytest.importorskip("onnx")
    helper, kinds, n = onnx.helper, onnx.TensorProto, onnx.helper.make_node
    rng = np.random.default_rng(3)
    weights = {
        "w1": rng.standard_normal((24, 64)) * 0.2, "b1": rng.standard_normal(64),
        "w2": rng.standard_normal((64, 24)) * 0.2, "b2": rng.standard_normal(24),
        "root": np.array(2**0.5), "one": np.array(1.0), "half": np.array(0.5),
    }  # fmt: skip
    weights = {name: a.astype("float16") for name, a in weights.items()}
    nodes = [
        n("MatMul", ["xh", "w1"], ["m1"]), n("Add", ["m1", "b1"], ["h"]),
        n("Div", ["h", "root"], ["d"]), n("Erf", ["d"], ["e"]), n("Add", ["e", "one"], ["p"]),
        n("Mul", ["h", "p"], ["q"]), n("Mul", ["q", "half"], ["g"]),
        n("MatMul", ["g", "w2"], ["m2"]), n("Add", ["m2", "b2"], ["yh"]),
        n("Cast", ["x"], ["xh"], to=kinds.FLOAT16), n("Cast", ["yh"], ["y"], to=kinds.FLOAT),
    ]  # fmt: skip
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "halves", [value("x", kinds.FLOAT, (7, 24))], [value("y", kinds.FLOAT, (7, 24))],
        [onnx.numpy_helper.from_array(a, name) for name, a in weights.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    with pytest.warns(ModelWarning, match="topologically sorted"):
        library = selfbyoc.build(selfbyoc.from_onnx(model))
    assert library.report.counts == {"dense_gelu_dense": 1}
    x = rng.standard_normal((7, 24)).astype(F32)
    wide = {name: a.astype("float64") for name, a in weights.items()}
    hidden = x.astype("float16").astype("float64") @ wide["w1"] + wide["b1"]
    erf = np.vectorize(math.erf)(hidden / 2**0.5)
    wanted = hidden * (erf + 1) / 2 @ wide["w2"] + wide["b2"]
    np.testing.assert_allclose(library(x)[0], wanted, rtol=2e-3, atol=2e-3)
