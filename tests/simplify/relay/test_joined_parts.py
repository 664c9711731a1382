"""What is joined and brought to another scale then, part by part; fixed points of levels."""

import numpy as np
import pytest
from relay_models import run_graph, typed_fixed_points
from tvm import relay

import selfbyoc
from selfbyoc.ir.relay.rewrite import rewritten
from selfbyoc.simplify.relay.joined_parts import requantised_by_parts
from selfbyoc.simplify.relay.multipliers import multipliers_as_scales
from selfbyoc.tvm import tvm

CHANNELS = {"x": 3, "y": 1}


def requantized(value, scale=0.013):
    numbers = (relay.const(np.asarray(scale, "float32")), relay.const(0, "int32"))
    ends = (relay.const(0.9, "float32"), relay.const(1, "int32"))
    asked = {"rounding": "UPWARD", "compute_dtype": "int64", "out_dtype": "int32"}
    return relay.qnn.op.requantize(value, *numbers, *ends, axis=1, **asked)


def byte(value):
    return relay.cast(relay.clip(value, -127, 127), "int8")


def typed(program, dtype="int32"):
    given = [relay.var(name, shape=(2, n, 5), dtype=dtype) for name, n in CHANNELS.items()]
    body = program(relay.concatenate(given, axis=1))
    return relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function(given, body)))


def run(mod, dtype="int32"):
    rng = np.random.default_rng(0)
    ends = np.iinfo(dtype)
    limits = max(ends.min, -20000), min(ends.max, 20000)
    x, y = (rng.integers(*limits, (2, n, 5)).astype(dtype) for n in CHANNELS.values())
    x.flat[:2] = ends.min, ends.max
    return run_graph(relay.build(mod, target="llvm"), x, y=y)


def names(mod):
    """The ops of main, the last one first."""
    found, expr = [], mod["main"].body
    while isinstance(expr, (relay.Call, relay.Tuple)):
        is_call = isinstance(expr, relay.Call)
        found += [expr.op.name] if is_call else []
        expr = expr.args[0] if is_call else expr.fields[0]
    return found


MOVED = {
    "to bytes": (lambda x: byte(requantized(x)), ["cast", "clip", "qnn.requantize"]),
    "bare": (requantized, ["qnn.requantize"]),
    "twice": (
        lambda x: byte(requantized(byte(requantized(x)), 0.3)),
        ["cast", "clip", "qnn.requantize"] * 2,
    ),
}


@pytest.mark.parametrize("dtype", ["int32", "int8"])
@pytest.mark.parametrize("name", MOVED)
def test_each_part_by_itself(name, dtype):
    program, moved = MOVED[name]
    mod = typed(program, dtype)
    done = requantised_by_parts(mod)
    assert names(done)[0] == "concatenate"
    assert names(done).count("concatenate") == 1
    assert names(done)[1 : 1 + len(moved)] == moved
    np.testing.assert_array_equal(run(done, dtype), run(mod, dtype))


STAYS = {
    "a scale for each channel": lambda x: requantized(x, [0.01, 0.02, 0.03, 0.04]),
    "read twice": lambda x: relay.add(requantized(x), x),
    "returned, too": lambda x: relay.Tuple([requantized(x), x]),
    "no requantize": byte,
    "something between": lambda x: requantized(relay.reshape(x, (2, 20))),
}


@pytest.mark.parametrize("name", STAYS)
def test_others_stay(name):
    mod = typed(STAYS[name])
    assert requantised_by_parts(mod) is mod


def test_what_two_read_is_joined_for_both():
    """A clip of one of two readers would be made of each part, and joined once more."""

    def program(x):
        wide = requantized(x)
        return relay.add(wide, relay.clip(wide, -9, 9))

    mod = typed(program)
    done = requantised_by_parts(mod)
    assert names(done)[:2] == ["add", "concatenate"]
    np.testing.assert_array_equal(run(done), run(mod))


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize(("multiplier", "shift"), [(1292281472, 1), (1095396864, -3), (1 << 30, 2)])
def test_a_fixed_point_of_levels_is_of_their_type(dtype, multiplier, shift):
    """What leaves 8 bits wraps, as the type says: TVM alone builds none."""
    x = relay.var("x", shape=(2, 128), dtype=dtype)
    y = relay.add(relay.fixed_point_multiply(x, multiplier, shift), x)
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], y)))
    levels = np.arange(256).astype(dtype).reshape(2, 128)
    found = selfbyoc.build(mod, "llvm")(levels)[0]
    assert found.dtype == dtype
    exact = np.floor(levels.astype("float64") * multiplier * 2.0 ** (shift - 31) + 0.5)
    wanted = exact.astype("int64").astype(dtype) + levels
    np.testing.assert_array_equal(found, wanted)


def test_tvm_alone_builds_no_fixed_point_of_levels():
    """Where this fails, TVM is mended, and `typed_fixed_points` of the tests can go."""
    x = relay.var("x", shape=(2, 128), dtype="int8")
    y = relay.concatenate([relay.fixed_point_multiply(x, 1292281472, 1), x], axis=1)
    mod = tvm.IRModule.from_expr(relay.Function([x], y))
    with pytest.raises(ValueError, match="int8 vs int32"):
        relay.build(mod, target="llvm")
    levels = np.arange(256).astype("int8").reshape(2, 128)
    found = selfbyoc.build(mod, "llvm")(levels)[0]
    alone = relay.build(typed_fixed_points(mod), target="llvm")
    np.testing.assert_array_equal(found, run_graph(alone, levels))


@pytest.mark.parametrize("wanted", ["int8", "int32"])
@pytest.mark.parametrize("dtype", ["int8", "int32"])
def test_a_fixed_point_in_64_bits_of_levels_or_sums(dtype, wanted):
    def program(x):
        wide = relay.fixed_point_multiply(relay.cast(x, "int64"), 1710757760, -7)
        return relay.cast(relay.clip(wide, -127, 127), wanted)

    mod = typed(program, dtype)
    done = rewritten(mod, multipliers_as_scales)
    assert "qnn.requantize" in names(done)
    np.testing.assert_array_equal(run(done, dtype), run(mod, dtype))
    assert done["main"].body.checked_type == mod["main"].body.checked_type
