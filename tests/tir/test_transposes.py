"""Strided vectors of a loop become rows and shuffles: the same numbers, in fewer loads."""

import numpy as np
import pytest
from harness import model, random_args

import selfbyoc
from selfbyoc import BUILTIN
from selfbyoc.tir import strided_vectors
from selfbyoc.tir.strided_vectors import _transposing, with_transposes
from selfbyoc.tir.vector_transpose import transposed
from selfbyoc.tvm import (
    Schedule,
    child_blocks,
    dtype_of,
    get_func,
    make_target,
    module_source,
    te,
    tensor,
    tir,
    tvm,
    walk,
)
from selfbyoc.tvm.build import build_module
from selfbyoc.tvm.config import kernel_config


def test_rows_are_kept_in_memory_not_named():
    """TVM's Analyzer puts the values of names into each other: minutes for some functions."""
    found: list[str] = []

    def visit(node):
        kind = type(node).__name__
        found.append(f"a name of {dtype_of(node.var)}" if kind in ("Bind", "LetStmt") else kind)

    def last(func):
        done = with_transposes(func)
        walk(done.body, visit)
        return done

    x = te.placeholder((40, 16), "float32", name="x")
    module = lowered(te.compute((16, 40), lambda i, j: x[j, i], name="y"), [x], 8, last)
    assert "Shuffle" in found
    assert "a name of float32x8" not in found
    text = module_source(module, "ll").splitlines()
    assert not [line for line in text if "alloca" in line and "float" in line]  # registers


@pytest.mark.parametrize("count", [4, 8, 16])
def test_a_square_is_transposed(count):
    square, shuffles = np.arange(count * count).reshape(count, count), []

    def shuffle(a, b, places):
        assert len(places) == count
        shuffles.append(places)
        return np.concatenate([a, b])[list(places)]

    np.testing.assert_array_equal(transposed(list(square), shuffle), square.T)
    assert len(shuffles) == {4: 8, 8: 24, 16: 64}[count]


def lowered(output, inputs, lanes, last):
    """A copy in vectors of its last axis, as a module of its own."""
    sch = Schedule(te.create_prim_func([*inputs, output]))
    (block,) = child_blocks(sch)
    *_, column = sch.get_loops(block)
    outer, lane = sch.split(column, [None, lanes])
    sch.unroll(outer)
    sch.vectorize(lane)
    # SSE code runs everywhere; LLVM's width has nothing to do with what is rewritten.
    target = make_target("llvm -mcpu=x86-64")
    with tvm.transform.PassContext(opt_level=3, config=kernel_config(target)):
        return build_module(sch.mod, target, last)


def both(element, shape, inputs, lanes, dtype=None):
    """The results before and after, and how many shuffles the code has then."""
    rng = np.random.default_rng(7)
    args = [te.placeholder(s, d, name=f"x{i}") for i, (s, d) in enumerate(inputs)]
    values = [rng.integers(-99, 99, s).astype(d) for s, d in inputs]
    output = te.compute(shape, lambda *i: element(*args, *i), name="y")
    found, shuffles = [], []
    for last in (None, with_transposes):
        module = lowered(output, args, lanes, last)
        result = tensor(np.full(shape, 77, dtype or inputs[0][1]))
        get_func(module, "main")(*(tensor(v) for v in values), result)
        found.append(result.numpy())
        shuffles.append(module_source(module, "ll").count("shufflevector"))
    return found, shuffles, values


def padded(x, i, j):
    """A column of zeros on both sides of an image."""
    inside = tir.all(j >= 0, i >= 1, i < 20)
    return tir.if_then_else(inside, x[j, i - 1], tir.const(0, "float32"))


CASES = {
    "a matrix": (lambda x, i, j: x[j, i], (32, 16), (16, 32)),
    "turns over": (lambda x, i, j: x[j, i], (37, 16), (16, 37)),
    "one square": (lambda x, i, j: x[j, i], (16, 16), (16, 16)),
    "zeros around it": (padded, (21, 16), (16, 19)),
    "a row again and again": (lambda x, i, j: x[tir.min(j, 12), i], (24, 16), (13, 24)),
    "a sum": (lambda x, i, j: x[j, i] * 2.0 + x[j, i + 3], (24, 16), (16, 27)),
}


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("name", CASES)
def test_results_stay(name, lanes):
    element, shape, of_x = CASES[name]
    (before, after), (few, many), _ = both(element, shape, [(of_x, "float32")], lanes)
    np.testing.assert_array_equal(before, after)
    assert many > few, "nothing was transposed"


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_bytes_are_widened_in_their_rows(dtype, lanes):
    """Both signs, as integers and as words of two. Bytes as they are TVM makes no vectors of."""

    def wide(x, i, j):
        return x[j, i].astype("int32")

    inputs = [((48, 16), dtype)]
    (before, after), (few, many), (x,) = both(wide, (16, 48), inputs, lanes, "int32")
    np.testing.assert_array_equal(before, after)
    np.testing.assert_array_equal(after, x.T)
    assert many > few

    def word(x, i, j):
        low, high = (x[2 * j + n, i].astype("int32") - 7 for n in (0, 1))
        return low + high * 65536

    inputs = [((64, 16), dtype)]
    (before, after), (few, many), (x,) = both(word, (16, 32), inputs, lanes, "int32")
    np.testing.assert_array_equal(before, after)
    levels = x.astype("int32").T - 7
    np.testing.assert_array_equal(after, levels[:, ::2] + levels[:, 1::2] * 65536)
    assert many > few


def test_a_condition_of_two_loops_is_asked_for_each_square():
    def corner(x, i, j, c):
        inside = tir.all(i + j >= 9, i + j < 40)
        return tir.if_then_else(inside, x[i, c, j], tir.const(-1, "float32"))

    inputs = [((17, 8, 30), "float32")]
    (before, after), (few, many), (x,) = both(corner, (17, 30, 8), inputs, 8)
    np.testing.assert_array_equal(before, after)
    i, j = np.indices((17, 30))
    wanted = np.where(((i + j >= 9) & (i + j < 40))[..., None], x.transpose(0, 2, 1), -1)
    np.testing.assert_array_equal(after, wanted)
    assert many > few


def test_what_a_failing_condition_stands_for_is_not_read():
    """It may lie outside of its buffer where the condition holds."""

    def joined(x, i, j):
        return tir.if_then_else(i < 16, x[j, i], x[j, i - 16] * 2.0)

    (before, after), (few, many), _ = both(joined, (32, 8), [((8, 16), "float32")], 8)
    np.testing.assert_array_equal(before, after)
    assert many > few
    seen = []
    x = te.placeholder((8, 16), "float32", name="x")
    y = te.compute((32, 8), lambda *i: joined(x, *i), name="y")

    def last(func):
        walk(with_transposes(func).body, lambda n: seen.append(type(n).__name__ == "Shuffle"))
        return func

    lowered(y, [x], 8, last)
    assert sum(seen) == 24


@pytest.mark.parametrize(
    ("step", "second", "squares"), [(16, 8, True), (8, 8, False), (16, 20, False), (4, 8, False)]
)
def test_stores_of_two_turns_that_meet_keep_their_order(step, second, squares):
    turn = tir.Var("z", "int32")
    x, y = (tir.decl_buffer((4096,), "float32", name=n) for n in "xy")
    load = tir.BufferLoad(x, [tir.Ramp(turn, 64, 8)])
    stores = [tir.BufferStore(y, load, [tir.Ramp(turn * step + at, 1, 8)]) for at in (0, second)]
    loop = tir.For(turn, tir.const(0, "int32"), 32, tir.ForKind.SERIAL, tir.SeqStmt(stores))
    assert (_transposing(loop) is not None) == squares


LEFT = {
    "fewer turns than lanes": (lambda x, i, j: x[j, i], (7, 16), (16, 7), "float32"),
    "every second element": (lambda x, i, j: x[j, 2 * i], (16, 16), (16, 32), "float32"),
    "the same element": (lambda x, i, j: x[j, 0], (16, 16), (16, 4), "float32"),
    "no stride": (lambda x, i, j: x[i, j], (16, 16), (16, 16), "float32"),
    "elements of 16 bits": (lambda x, i, j: x[j, i], (16, 16), (16, 16), "int16"),
    "not for one interval": (
        lambda x, i, j: tir.if_then_else(tir.floormod(i, 3) == 0, x[j, i], tir.const(0, "float32")),
        (24, 16), (16, 24), "float32",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LEFT)
def test_what_is_no_square_stays(name):
    element, shape, of_x, dtype = LEFT[name]
    (before, after), (few, many), _ = both(element, shape, [(of_x, dtype)], 8)
    np.testing.assert_array_equal(before, after)
    assert many == few


@pytest.mark.parametrize(
    ("name", "case"), [("attention", 0), ("depthwise_pointwise", 0), ("conv2d_relu_conv2d_relu", 1)]
)
def test_built_in_kernels_have_such_loops(name, case, monkeypatch):
    """A schedule that no longer makes them is right, and slow."""
    (composite,) = (c for c in BUILTIN if c.name == name)
    found, squares = [], strided_vectors._in_squares

    def counted(*args):
        found.append(args)
        return squares(*args)

    monkeypatch.setattr(strided_vectors, "_in_squares", counted)
    case = composite.cases[case]
    target = make_target("llvm -mcpu=haswell")
    mod = selfbyoc.partition_for_tefuse(
        model(composite, case, random_args(case)), target=target, composites=[composite]
    )
    selfbyoc.build(mod, target)
    assert found
