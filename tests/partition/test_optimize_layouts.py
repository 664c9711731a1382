"""`optimize_layouts`: what moves, and what stays where it is."""

import json

import numpy as np
import pytest

import selfbyoc
from selfbyoc import Composite, op
from selfbyoc.errors import InputError
from selfbyoc.ir.emit import emit
from selfbyoc.ir.generation import ir
from selfbyoc.partition.layouts.record import LAYOUTS, Layouts
from selfbyoc.tvm import GENERATION

X, NHWC, BACK = (2, 5, 7, 3), (0, 3, 1, 2), (0, 2, 3, 1)


def told(mod):
    return Layouts(**json.loads(str(mod.attrs[LAYOUTS])))


def transposes(mod):
    graph = ir.read_as_written(mod["main"]).graph
    return [call for call in graph.ops if call.kind == "transpose"]


def optimized(program, args, constants=(), **more):
    """-> the new module, and NumPy's results of the old and of the new one, on seeded inputs."""
    rng = np.random.default_rng(3)
    arrays = {n: rng.standard_normal(shape).astype("float32") for n, shape in args.items()}
    fixed = {n: arrays.pop(n) for n in constants}
    mod = emit(program, args, fixed)
    done = selfbyoc.optimize_layouts(mod, **more)
    before, after = (selfbyoc.build(m)(**arrays) for m in (mod, done))
    for one, other in zip(before, after, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
    return done


def normalised(x, mean, var, gamma, beta):
    y = op.transpose(x, axes=NHWC)
    y = op.relu(op.batch_norm(y, gamma, beta, mean, var)[0])
    return op.transpose(y, axes=BACK)


PROGRAMS = {
    "elementwise": lambda x: op.transpose(op.relu(op.transpose(x, axes=NHWC)), axes=BACK),
    "reduction": lambda x: op.sum(op.relu(op.transpose(x, axes=NHWC)), axis=(2, 3)),
    "kept axes": lambda x: op.transpose(
        op.max(op.transpose(x, axes=NHWC), axis=1, keepdims=True), axes=BACK
    ),
    "concatenate": lambda x: op.transpose(
        op.concatenate([op.transpose(x, axes=NHWC), op.transpose(op.abs(x), axes=NHWC)], axis=1),
        axes=BACK,
    ),
    "split": lambda x: op.transpose(
        op.split(op.transpose(x, axes=NHWC), indices_or_sections=3, axis=1)[1], axes=BACK
    ),
    "cast": lambda x: op.transpose(op.cast(op.transpose(x, axes=NHWC), dtype="int8"), axes=BACK),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_both_transposes_are_gone(name):
    done = optimized(PROGRAMS[name], {"x": X})
    assert transposes(done) == []
    assert told(done).written > told(done).left == 0


def test_batch_norm_moves_with_its_vectors():
    vectors = dict.fromkeys(("mean", "gamma", "beta"), (3,))
    mod = emit(normalised, {"x": X, **vectors, "var": (3,)})
    done = selfbyoc.optimize_layouts(mod)
    assert transposes(done) == []
    rng = np.random.default_rng(0)
    args = {n: rng.standard_normal(s).astype("float32") for n, s in {"x": X, **vectors}.items()}
    args["var"] = np.array([0.5, 1.5, 2.5], "float32")
    wide = {n: a.astype("float64") for n, a in args.items()}
    expected = (wide["x"] - wide["mean"]) / np.sqrt(wide["var"] + 1e-5) * wide["gamma"]
    found = selfbyoc.build(done)(**args)[0]
    np.testing.assert_allclose(found, np.maximum(expected + wide["beta"], 0), rtol=1e-4, atol=1e-5)


def test_a_constant_is_transposed_ahead_of_time():
    def program(x, c):
        return op.transpose(op.add(op.transpose(x, axes=NHWC), c), axes=BACK)

    assert transposes(optimized(program, {"x": X, "c": (3, 5, 7)}, ["c"])) == []
    assert transposes(optimized(program, {"x": X, "c": (3, 1, 1)}, ["c"])) == []
    # One that comes at run time is moved as well, and that is less than x twice.
    done = optimized(program, {"x": X, "c": (3, 5, 7)})
    assert (told(done).left, told(done).bytes_left) == (1, 3 * 5 * 7 * 4)


def test_it_goes_where_the_tensor_is_small():
    """Before the sum to after it, and to before the concatenation."""
    done = optimized(lambda x: op.sum(op.transpose(x, axes=NHWC), axis=3), {"x": X})
    assert told(done).bytes_left == 2 * 3 * 5 * 4
    (call,) = transposes(done)
    assert call.inputs[0].shape == (2, 5, 3)

    def joined(x, y):
        return op.transpose(op.concatenate([op.transpose(x, axes=BACK), y], axis=3), axes=NHWC)

    done = optimized(joined, {"x": (2, 8, 5, 7), "y": (2, 5, 7, 2)})
    assert told(done).bytes_left == 2 * 5 * 7 * 2 * 4


def test_a_value_with_many_users_is_transposed_once():
    def program(x):
        y = op.transpose(x, axes=NHWC)
        return op.relu(y), op.negative(op.transpose(x, axes=NHWC)), op.transpose(y, axes=BACK)

    done = optimized(program, {"x": X})
    assert (told(done).written, told(done).left) == (3, 1)


def test_axes_of_extent_one_cost_nothing():
    done = optimized(lambda x: op.relu(op.transpose(x, axes=NHWC)), {"x": (1, 5, 1, 3)})
    assert told(done).written == told(done).left == 1  # 5 x 3 becomes 3 x 5
    done = optimized(lambda x: op.relu(op.transpose(x, axes=NHWC)), {"x": (1, 1, 7, 1)})
    assert (told(done).bytes_written, told(done).bytes_left) == (0, 0)


def test_an_op_that_nobody_can_move_stays():
    """softmax keeps its axis; a reshape takes what it took."""
    softmax = optimized(
        lambda x: op.transpose(op.softmax(op.transpose(x, axes=NHWC)), axes=BACK), {"x": X}
    )
    assert told(softmax).left == 2
    flat = optimized(
        lambda x: op.reshape(op.relu(op.transpose(x, axes=NHWC)), shape=(2, 105)), {"x": X}
    )
    assert told(flat).left == 1


def convolutions(layout, kernel, axis):
    def program(x, w, b, v):
        conv = {"data_layout": layout, "kernel_layout": kernel, "padding": 1}
        y = op.relu(op.bias_add(op.conv2d(x, w, **conv), b, axis=axis))
        y = op.max_pool2d(y, pool_size=2, strides=2, layout=layout)
        return op.add(op.relu(op.conv2d(y, v, **conv)), y)

    return program


NETWORK = {"x": (1, 8, 10, 3), "w": (3, 3, 3, 5), "b": (5,), "v": (3, 3, 5, 5)}


@pytest.mark.parametrize("constants", [["w", "b", "v"], []])
def test_convolutions_move_to_the_layout_that_was_asked_for(constants):
    program = convolutions("NHWC", "HWIO", 3)
    assert told(selfbyoc.optimize_layouts(emit(program, NETWORK))).moved == 0
    done = optimized(program, NETWORK, constants, data_layout="NCHW")
    graph = ir.read_as_written(done["main"]).graph
    layouts = {c.attrs["data_layout"] for c in graph.ops if c.kind == "conv2d"}
    assert layouts == {"NCHW"}
    assert {c.attrs["kernel_layout"] for c in graph.ops if c.kind == "conv2d"} == {"OIHW"}
    # The image, the result, and weights that are no constants.
    assert len(transposes(done)) == (2 if constants else 4)
    counts = selfbyoc.report(selfbyoc.partition_for_tefuse(done)).counts
    assert "conv2d_nhwc" not in counts
    assert counts["max_pool2d"] == 1


@pytest.mark.skipif(GENERATION == "relay", reason="Relay's batch_matmul has three axes")
def test_what_a_composite_does_for_nothing_stays():
    """attention_of_heads reads and writes heads where they lie."""

    def program(q, k, v):
        q, k, v = (op.transpose(x, axes=(0, 2, 1, 3)) for x in (q, k, v))
        scores = op.multiply(op.batch_matmul(q, k, transpose_b=True), 0.25)
        return op.transpose(op.batch_matmul(op.softmax(scores), v), axes=(0, 2, 1, 3))

    done = optimized(program, dict.fromkeys("qkv", (1, 24, 2, 16)))
    counts = selfbyoc.report(selfbyoc.partition_for_tefuse(done)).counts
    assert counts == {"attention_of_heads": 1}
    assert told(done).written == 0


def test_no_composite_is_lost():
    """A pool moves to NCHW, but not away from who takes it in NHWC."""

    def pooled(x):
        return op.relu(op.max_pool2d(x, pool_size=2, layout="NHWC"))

    def program(x):
        return op.transpose(pooled(op.transpose(x, axes=BACK)), axes=NHWC)

    assert transposes(optimized(program, {"x": X}, composites=[])) == []
    mine = Composite("mine", pooled)
    done = optimized(program, {"x": X}, composites=[mine])
    assert len(transposes(done)) == 2
    parted = selfbyoc.partition_for_tefuse(done, composites=[mine])
    assert selfbyoc.report(parted).counts == {"mine": 1}


def test_it_is_told():
    done = optimized(PROGRAMS["elementwise"], {"x": X})
    text = (
        "2 transposes before, 0 now; 1680 bytes moved by them before, 0 bytes now; "
        "1 ops have another order of axes"
    )
    explained = selfbyoc.explain(done)
    assert f"Layouts: {text}" in str(explained)
    assert type(explained).from_json(explained.to_json()).report.layouts == text
    parted = selfbyoc.partition_for_tefuse(done)
    assert selfbyoc.report(parted).layouts == text
    assert f"layouts: {text}" in str(selfbyoc.report(parted))
    assert f"Layouts: {text}" in str(selfbyoc.explain(parted))


def test_twice_is_once_and_the_module_is_not_changed():
    mod = emit(PROGRAMS["concatenate"], {"x": X})
    before = str(mod)
    once = selfbyoc.optimize_layouts(mod)
    again = selfbyoc.optimize_layouts(once)
    assert str(mod) == before
    assert str(once["main"]) == str(selfbyoc.optimize_layouts(mod)["main"])
    assert told(again).bytes_left == told(once).bytes_left


def test_errors():
    mod = emit(PROGRAMS["elementwise"], {"x": X})
    with pytest.raises(InputError, match="data_layout: expected NCHW or NHWC, found 'NCHW8c'"):
        selfbyoc.optimize_layouts(mod, data_layout="NCHW8c")
    with pytest.raises(InputError, match="partitioned already"):
        selfbyoc.optimize_layouts(selfbyoc.partition_for_tefuse(mod))
