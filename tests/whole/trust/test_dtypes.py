"""Dtypes besides float32: weights keep theirs, and float16 has every function."""

import math

import numpy as np
import pytest
from against_numpy import normal, taken

import selfbyoc
from selfbyoc import op
from selfbyoc.ir.emit import emit
from selfbyoc.ops import mathfn, rounded
from selfbyoc.partition.generation import ir
from selfbyoc.runtime.tolerance import first_wrong
from selfbyoc.tvm import get_func, make_target, te, tensor, tvm
from selfbyoc.tvm.build import build_module

INTEGERS = ("int8", "uint8", "int16", "int32", "int64")
FLOATS = ("float16", "float64")


def plain(x, w, b):
    return op.dense(x, w)


def whole(x, w, b):
    return op.relu(op.bias_add(op.dense(x, w), b))


def residual(x, w, b):
    return op.add(op.dense(x, w), op.reshape(b, shape=(1, 17)))


def gelu(x, w, b):
    return op.gelu(op.bias_add(op.dense(x, w), b))


def arrays(dtype, rows=1):
    shapes = {"x": (rows, 9), "w": (17, 9), "b": (17,)}
    return {name: abs(normal(*shape, dtype=dtype)) for name, shape in shapes.items()}


@pytest.mark.parametrize("dtype", INTEGERS + FLOATS)
@pytest.mark.parametrize("program", [plain, whole, residual], ids=lambda p: p.__name__)
def test_constant_weights(program, dtype):
    given = arrays(dtype)
    assert taken(program, {"x": given.pop("x")}, given) == {"dense": 1}


@pytest.mark.parametrize("dtype", FLOATS)
def test_gelu_after_dense(dtype):
    given = arrays(dtype, rows=3)
    assert taken(gelu, {"x": given.pop("x")}, given) == {"dense": 1}


@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_packing_and_a_users_params_keep_64_bits(dtype):
    """Numbers that 32 bits cannot hold."""
    large = np.arange(9 * 17).reshape(17, 9) + (2**40 if dtype == "int64" else 2.0**-30)
    args = {"x": ((2, 9), dtype), "w": ((17, 9), dtype)}
    mod = emit(lambda x, w: op.dense(x, w), args)
    library = selfbyoc.build(mod, params={"w": large.astype(dtype)})
    assert library.report.counts == {"dense": 1}
    x = np.zeros((2, 9), dtype)
    x[1, 3] = 1
    np.testing.assert_array_equal(library(x)[0][1], large[:, 3].astype(dtype))


@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_a_program_keeps_64_bits(dtype):
    mod = emit(lambda x, w: op.add(x, w), {"x": ((3,), dtype)}, {"w": np.ones(3, dtype)})
    assert [str(v.dtype) for v in selfbyoc.build(mod)(np.ones(3, dtype))] == [dtype]
    assert not ir.external_functions(selfbyoc.partition_for_tefuse(mod))


FUNCTIONS = {
    mathfn.exp: np.exp,
    mathfn.exp_of_difference: np.exp,
    mathfn.erf: np.vectorize(math.erf),
    mathfn.log: np.log,
    mathfn.sigmoid: lambda x: 1 / (1 + np.exp(-x)),
    mathfn.tanh: np.tanh,
    mathfn.gelu: lambda x: x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2,
    rounded.round_even: np.round,
}


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_a_function_of_every_float(function, dtype):
    x = abs(normal(19, dtype=dtype)) + np.dtype(dtype).type(0.25)
    if function is mathfn.exp_of_difference:
        x = -x
    given = te.placeholder((19,), dtype, name="given")
    made = te.compute((19,), lambda i: function(given[i]), name="made")
    func = te.create_prim_func([given, made]).with_attr("global_symbol", "main")
    out = tensor(np.zeros(19, dtype))
    built = build_module(tvm.IRModule({"main": func}), make_target("llvm"))
    get_func(built, "main")(tensor(x), out)
    expected = FUNCTIONS[function](x.astype("float64"))
    assert first_wrong(out.numpy(), expected, dtype, 1) is None
