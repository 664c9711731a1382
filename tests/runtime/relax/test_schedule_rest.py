"""What no composite took: parallel and in vectors, in `build` and as a pass before tvm.compile."""

import math

import numpy as np
import pytest
from tvm import relax

import selfbyoc
from selfbyoc import host_target, op
from selfbyoc.errors import FallbackWarning
from selfbyoc.ir.emit import emit
from selfbyoc.ir.relax.emit import emit_module
from selfbyoc.tir.transposed_tiles import TRANSPOSE
from selfbyoc.tir.vector_math import vector_math
from selfbyoc.transform import ScheduleRest
from selfbyoc.tvm import te, tensor, tir, tvm

SHAPE = (2, 5, 33, 16)


def data():
    return np.random.default_rng(0).standard_normal(SHAPE).astype("float32")


ERF = np.vectorize(math.erf, otypes=["float64"])
PROGRAMS = {
    "exp": (lambda x: op.exp(x), np.exp),
    "erf": (lambda x: op.erf(x), ERF),
    "log": (lambda x: op.log(op.add(op.abs(x), 1.0)), lambda x: np.log(np.abs(x) + 1)),
    "square": (lambda x: op.power(op.relu(x), 2.0), lambda x: np.maximum(x, 0) ** 2),
    "sigmoid": (lambda x: op.sigmoid(x), lambda x: 1 / (1 + np.exp(-x))),
    "tanh": (lambda x: op.tanh(x), np.tanh),
    "nested": (lambda x: op.exp(op.tanh(op.sigmoid(x))),
               lambda x: np.exp(np.tanh(1 / (1 + np.exp(-x))))),
    "softmax over channels": (lambda x: op.softmax(x, axis=1),
                              lambda x: np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_values(name):
    program, meaning = PROGRAMS[name]
    x = data()
    library = selfbyoc.build(emit(program, {"x": SHAPE}), composites=[])
    assert library.unscheduled == {}
    np.testing.assert_allclose(library(x)[0], meaning(x.astype("float64")), rtol=2e-6, atol=2e-6)


def rest(mod):
    done = ScheduleRest(host_target())(mod)
    return [f for _, f in done.functions.items() if isinstance(f, tir.PrimFunc)]


def test_a_copy_that_turns_over_goes_in_squares():
    """Tokens as an image, without the first one: by what the reshape and the slice index."""

    def body(x):
        tokens = relax.op.strided_slice(x, axes=[1], begin=[1], end=[50])
        return [relax.op.reshape(relax.op.permute_dims(tokens, [0, 2, 1]), (2, 24, 7, 7))]

    mod = relax.transform.Normalize()(emit_module({"x": ((2, 50, 24), "float32")}, body))
    (func,) = rest(mod)
    assert TRANSPOSE in func.script()
    library = selfbyoc.build(mod, composites=[])
    assert library.unscheduled == {}
    x = np.random.default_rng(0).standard_normal((2, 50, 24)).astype("float32")
    wanted = x[:, 1:].transpose(0, 2, 1).reshape(2, 24, 7, 7)
    np.testing.assert_array_equal(library(x)[0], wanted)


def test_no_call_of_the_c_library_for_each_element():
    (func,) = rest(emit(lambda x: op.exp(x), {"x": SHAPE}))
    text = func.script()
    assert "T.exp(" not in text
    assert "T.vectorized" in text
    assert "T.parallel" not in text  # 5280 elements are not worth a region


def test_none_of_what_is_joined_before_it_or_nested():
    """TVM fuses all of it, and the schedule writes the argument where the polynomial names it."""

    def program(a, b, c, scale):
        y = op.multiply(op.concatenate((a, b, c), axis=1), scale)
        return op.multiply(y, op.sigmoid(op.tanh(y)))

    shapes = dict.fromkeys("abc", (1, 5, 7, 7)) | {"scale": (1, 15, 1, 1)}
    rng = np.random.default_rng(0)
    *parts, scale = (rng.standard_normal(shape).astype("float32") for shape in shapes.values())
    mod = emit(program, shapes)
    assert not any(f"T.{name}(" in f.script() for f in rest(mod) for name in ("sigmoid", "tanh"))
    y = np.concatenate(parts, 1).astype("float64") * scale
    found = selfbyoc.build(mod, composites=[])(*parts, scale)[0]
    np.testing.assert_allclose(found, y / (1 + np.exp(-np.tanh(y))), rtol=2e-6, atol=2e-6)


def test_a_square_is_no_pow():
    (func,) = rest(emit(lambda x: op.power(x, 2.0), {"x": SHAPE}))
    assert "T.pow(" not in func.script()


def test_the_pass_before_tvm_compile():
    mod = emit(lambda x, w: op.sigmoid(op.dense(x, w)), {"x": (7, 40), "w": (24, 40)})
    dense = [c for c in selfbyoc.BUILTIN if c.name == "dense"]
    mod = selfbyoc.partition_for_tefuse(mod, composites=dense)
    rest = ScheduleRest(host_target())
    mod = rest(relax.transform.RunCodegen()(mod))
    assert rest.unscheduled == {}
    machine = relax.VirtualMachine(tvm.compile(mod, host_target()), tvm.cpu())
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(s).astype("float32") for s in ((7, 40), (24, 40)))
    expected = 1 / (1 + np.exp(-(x @ w.T).astype("float64")))
    np.testing.assert_allclose(machine["main"](tensor(x), tensor(w)).numpy(), expected, rtol=1e-5)


def test_other_dtypes_keep_their_intrinsics():
    mod = relax.transform.LegalizeOps()(emit(lambda x: op.exp(x), {"x": ((3, 4), "float64")}))
    (func,) = [f for _, f in mod.functions.items() if isinstance(f, tir.PrimFunc)]
    assert "T.exp(" in vector_math(func).script()


def planted(func):
    """A module that calls a PrimFunc on a matrix, and a ReLU after it."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType([33, 16], "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            var = builder.add_func(func, "mine")
            y = builder.emit(relax.call_tir(var, [x], x.ty))
            out = builder.emit_output(relax.op.nn.relu(y))
        builder.emit_func_output(out)
    return builder.get()


def doubled():
    a = te.placeholder((33, 16), name="a")
    return te.create_prim_func([a, te.compute((33, 16), lambda i, j: a[i, j] * 2.0, name="b")])


def test_what_is_scheduled_stays_as_it_is():
    mine = doubled().without_attr("global_symbol").with_attr("tirx.is_scheduled", True)
    done = ScheduleRest(host_target())(planted(mine))
    assert "vectorized" not in done["mine"].script()
    assert "vectorized" in done["relu"].script()
    x = np.random.default_rng(0).standard_normal((33, 16)).astype("float32")
    library = selfbyoc.build(planted(mine), composites=[])
    np.testing.assert_array_equal(library(x)[0], np.maximum(2 * x, 0))


def test_a_schedule_that_does_not_compile_is_left_out(monkeypatch):
    def wrong(sch, ops, target, _told):
        block = selfbyoc.tvm.child_blocks(sch)[-1]
        sch.bind(sch.get_loops(block)[0], "threadIdx.x")

    monkeypatch.setattr("selfbyoc.schedules.default.schedule", wrong)
    x = data()
    library = selfbyoc.build(emit(lambda x: op.exp(x), {"x": SHAPE}), composites=[])
    assert list(library.unscheduled) == ["tir_exp"]
    np.testing.assert_allclose(library(x)[0], np.exp(x), rtol=2e-6)


def test_a_schedule_that_raises_leaves_the_function_and_says_so(monkeypatch):
    def wrong(sch, ops, target, _told):
        raise ValueError

    monkeypatch.setattr("selfbyoc.schedules.default.schedule", wrong)
    library = selfbyoc.build(emit(lambda x: op.relu(x), {"x": SHAPE}), composites=[])
    assert library.unscheduled == {"relu": "ValueError"}
    np.testing.assert_array_equal(library(data())[0], np.maximum(data(), 0))


def test_of_sums_and_products_it_warns(monkeypatch):
    """They cost most; in front of the user's own line."""

    def wrong(sch, ops, target, _told):
        raise ValueError

    def program(x, w):
        return op.softmax(op.dense(op.exp(x), w))

    monkeypatch.setattr("selfbyoc.schedules.default.schedule", wrong)
    shapes = {"x": (7, 40), "w": (24, 40)}
    text = r"(matmul|softmax) and 1 more run as serial loops, .*: ValueError \(library.unscheduled"
    with pytest.warns(FallbackWarning, match=text) as told:
        library = selfbyoc.build(emit(program, shapes), composites=[])
    assert [warning.filename for warning in told] == [__file__]
    assert {"matmul", "softmax", "tir_exp"} <= {*library.unscheduled}


@pytest.mark.parametrize("keepdims", [True, False])
def test_a_mean_of_everything(keepdims):
    """What divides the sum has no loops, and TVM's rfactor would not be beside it."""
    x = data()
    mod = emit(lambda x: op.mean(x, axis=[0, 1, 2, 3], keepdims=keepdims), {"x": SHAPE})
    library = selfbyoc.build(mod, composites=[])
    assert library.unscheduled == {}
    np.testing.assert_allclose(library(x)[0], x.mean(keepdims=keepdims), rtol=2e-5, atol=1e-6)
