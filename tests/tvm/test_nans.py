"""NaN in, NaN out: what takes the larger or the smaller of floats, by whoever computes it."""

import numpy as np
import pytest
from onnx_models import FLOAT, model, value

import selfbyoc
from selfbyoc import Composite, emit, op
from selfbyoc.ir.generation import ir
from selfbyoc.runtime.numpy_ops import evaluate
from selfbyoc.tvm import structural_equal, te, tir, walk
from selfbyoc.tvm.nans import ANY_NAN, with_nans

NAN, INF = np.nan, np.inf
SHAPE = (3, 37)  # whole vectors and a tail


def operands():
    """NaN on either side, on both, beside infinity, first and last of a row."""
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(SHAPE).astype("float32") for _ in range(2))
    x[0, 0] = x[0, 5] = y[0, 5] = y[0, 6] = x[1, 36] = NAN
    x[1, 0], y[1, 36], x[0, 6] = INF, INF, -INF
    return x, y


OPS = {
    "clip": lambda x, y: op.clip(x, a_min=-0.5, a_max=0.5),
    "maximum": lambda x, y: op.maximum(x, y),
    "maximum of three": lambda x, y: op.maximum(op.maximum(x, y), op.negative(y)),
    "maximum of a number": lambda x, y: op.maximum(x, 0.0),
    "minimum": lambda x, y: op.minimum(y, x),
    "relu": lambda x, y: op.relu(x),
    "the largest of a row": lambda x, y: op.max(x, axis=1),
    "the largest of a column": lambda x, y: op.max(x, axis=0),
    "softmax": lambda x, y: op.softmax(x, axis=-1),
}


def check(program, args, constants=None, composites=()):
    types = {name: (a.shape, str(a.dtype)) for name, a in (args | (constants or {})).items()}
    meaning = ir.read(emit(program, types)["main"])
    arrays = args | (constants or {})
    with np.errstate(invalid="ignore"):
        wanted = evaluate(meaning, [arrays[v.name] for v in meaning.inputs])
    mod = emit(program, types, constants)
    library = selfbyoc.build(mod, composites=list(composites), cache=False)
    assert library.report.counts == {each.name: 1 for each in composites}
    assert any(np.isnan(each).any() for each in wanted)
    for found, expected in zip(library(**args), wanted, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def all_of(x, y):
    """Every op, in one model."""
    return tuple(program(x, y) for program in OPS.values())


def test_as_tvm_lowers_them():
    x, y = operands()
    check(all_of, {"x": x, "y": y})


def test_in_a_kernel_by_the_default_schedule():
    x, y = operands()
    mine = Composite("mine", lambda x, y: op.maximum(op.minimum(x, y), op.clip(y)))
    check(mine.pattern, {"x": x, "y": y}, composites=[mine])


POOLS = {
    "row by row": ((1, 2, 9, 40), {"pool_size": (3, 3), "strides": (2, 2), "padding": (1,) * 4}),
    "as flat lanes": ((1, 2, 9, 9), {"pool_size": (3, 3), "padding": (1,) * 4}),
    "by the default schedule": ((1, 2, 12, 12), {"pool_size": (9, 9)}),
}


@pytest.mark.parametrize("pool", POOLS)
def test_pools(pool):
    shape, attrs = POOLS[pool]
    x = np.random.default_rng(0).standard_normal(shape).astype("float32")
    x[0, 0, 0, 0] = x[0, 1, 4, 5] = x[0, 1, 8, 8] = NAN
    (built_in,) = (c for c in selfbyoc.BUILTIN if c.name == "max_pool2d")
    check(lambda x: op.max_pool2d(x, **attrs), {"x": x}, composites=[built_in])


def test_after_a_convolution():
    """In registers, where the order of the operands decides."""
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(s).astype("float32") for s in ((1, 4, 8, 16), (16, 4, 1, 1)))
    x[0, 1, 2, 3] = NAN
    (built_in,) = (c for c in selfbyoc.BUILTIN if c.name == "conv2d")
    program = lambda x, w: op.relu(op.conv2d(x, w))  # noqa: E731
    check(program, {"x": x}, {"w": w}, [built_in])


@pytest.mark.parametrize("name", ["Elu", "Sign", "HardSigmoid"])
def test_what_frontends_make_of_others(name):
    """As NumPy; and so does ONNX Runtime."""
    proto = model([(name, ["x"], "y", {})], [value("x", FLOAT, 2, 5)], [value("y", FLOAT, 2, 5)])
    x = np.array([[NAN, 1, -1, INF, 0], [-INF, 2, -0.5, NAN, 3]], "float32")
    (found,) = selfbyoc.build(selfbyoc.from_onnx(proto), cache=False)(x)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(x))


def selects(expression, **attrs):
    """How many comparisons are added to an expression of two tensors."""
    x, y = (te.placeholder((8,), "float32", name=name) for name in "xy")
    made = te.compute((8,), lambda i: expression(x(i), y(i)), attrs=attrs or None)
    found = []
    walk(with_nans(te.create_prim_func([x, y, made])).body, found.append, "Select")
    return len(found)


@pytest.mark.parametrize(
    ("expression", "count"),
    [
        (lambda x, y: tir.Max(x, tir.const(0, "float32")) + y, 0),
        (lambda x, y: tir.Max(tir.const(0, "float32"), tir.Min(tir.const(6, "float32"), x)) + y, 0),
        (lambda x, y: tir.Max(x.astype("int32"), y.astype("int32")).astype("float32"), 0),
        (lambda x, y: tir.Max(x, y), 1),
        (lambda x, y: tir.Max(tir.Max(x, y), y + x), 2),
    ],
    ids=["relu", "clip", "integers", "two", "three"],
)
def test_what_it_costs(expression, count):
    assert selects(expression) == count


def test_where_any_nan_will_do():
    x = te.placeholder((8, 4), "float32", name="x")
    k = te.reduce_axis((0, 4), name="k")
    peak = te.compute((8,), lambda i: te.max(x(i, k), axis=k), attrs=ANY_NAN)
    func = te.create_prim_func([x, peak])
    assert structural_equal(with_nans(func), func)
