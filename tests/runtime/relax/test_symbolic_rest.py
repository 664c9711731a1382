"""Symbolic sizes that are no argument's extent alone, in kernels and in what no composite took; and
functions that do not compile beside others that do.
"""

import numpy as np
import pytest
from tvm import relax

import selfbyoc
from selfbyoc import host_target
from selfbyoc.errors import InputError
from selfbyoc.runtime.relax.rest import failing
from selfbyoc.runtime.tolerance import first_wrong
from selfbyoc.transform import ScheduleRest
from selfbyoc.tvm import tir, tvm
from selfbyoc.tvm.symbolic import symbols

SIZES = (1, 2, 5, 8, 33)
op = relax.op


def module(of, **types):
    """A program of `of`, which is given a builder and variables of float32."""
    variables = [
        relax.Var(name, relax.TensorType(shape, "float32")) for name, shape in types.items()
    ]
    builder = relax.BlockBuilder()
    with builder.function("main", variables):
        with builder.dataflow():
            out = builder.emit_output(of(builder.emit, *variables))
        builder.emit_func_output(out)
    return builder.get()


def normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def test_a_product_of_rows_that_are_batch_times_17():
    """As nn.MultiheadAttention has them in torchvision's ViT: 20 times slower as serial loops."""
    n = tir.Var("batch", "int64")

    def program(emit, x, w, b):
        rows = emit(op.reshape(emit(op.permute_dims(x, [1, 0, 2])), (n * 17, 32)))
        y = emit(op.add(emit(op.matmul(rows, emit(op.permute_dims(w)))), b))
        return emit(op.reshape(y, (17, n, 48)))

    mod = module(program, x=(n, 17, 32), w=(48, 32), b=(48,))
    library = selfbyoc.build(mod)
    assert library.report.counts == {"dense": 1}
    assert library.unscheduled == {}
    w, b = normal(1, 48, 32), normal(2, 48)
    for size in SIZES:
        x = normal(size, size, 17, 32)
        expected = x.astype("float64").transpose(1, 0, 2) @ w.T + b
        assert first_wrong(library(x, w, b)[0], expected, "float32", 33) is None


def test_attention_of_batch_times_12_heads():
    """Three arguments have the extent; none has `batch`."""
    n = tir.Var("batch", "int64")

    def program(emit, q, k, v):
        q, k, v = (emit(op.reshape(x, (n * 12, 17, 8))) for x in (q, k, v))
        scores = emit(op.matmul(q, emit(op.permute_dims(k, [0, 2, 1]))))
        return emit(op.matmul(emit(op.nn.softmax(scores)), v))

    library = selfbyoc.build(module(program, **dict.fromkeys("qkv", (n, 12 * 17 * 8))))
    assert library.report.counts == {"attention": 1}
    assert library.unscheduled == {}
    for size in SIZES:
        given = [normal(seed, size, 12 * 17 * 8) for seed in range(3)]
        q, k, v = (x.astype("float64").reshape(-1, 17, 8) for x in given)
        weights = np.exp(q @ k.transpose(0, 2, 1))
        expected = weights / weights.sum(-1, keepdims=True) @ v
        assert first_wrong(library(*given)[0], expected, "float32", 17) is None


def test_windows_of_a_batch():
    """As Swin has them: arguments of batch * 4 windows, products of batch * 12 heads."""
    n = tir.Var("batch", "int64")

    def heads(emit, x, axes=(0, 2, 1, 3), shape=(5, 8)):
        windows = emit(op.reshape(x, (n * 4, 5, 3, 8)))
        return emit(op.reshape(emit(op.permute_dims(windows, axes)), (n * 12, *shape)))

    def program(emit, q, k, v, b):
        scores = emit(op.matmul(heads(emit, q), heads(emit, k, (0, 2, 3, 1), (8, 5))))
        scores = emit(op.add(emit(op.reshape(scores, (n * 4, 3, 5, 5))), b))
        weights = emit(op.reshape(emit(op.nn.softmax(scores)), (n * 12, 5, 5)))
        y = emit(op.reshape(emit(op.matmul(weights, heads(emit, v))), (n * 4, 3, 5, 8)))
        return emit(op.reshape(emit(op.permute_dims(y, [0, 2, 1, 3])), (n, 480)))

    library = selfbyoc.build(
        module(program, **dict.fromkeys("qkv", (n, 480)) | {"b": (1, 3, 5, 5)})
    )
    assert library.report.counts == {"attention_of_heads": 1}
    bias = normal(9, 1, 3, 5, 5)
    for size in SIZES:
        given = [normal(seed, size, 480) for seed in range(3)]
        q, k, v = (x.astype("float64").reshape(-1, 5, 3, 8).swapaxes(1, 2) for x in given)
        weights = np.exp(q @ k.swapaxes(2, 3) + bias)
        expected = (weights / weights.sum(-1, keepdims=True) @ v).swapaxes(1, 2)
        assert (
            first_wrong(library(*given, bias)[0], expected.reshape(size, 480), "float32", 8) is None
        )


def test_a_reshape_within_open_axes_is_fused():
    """As ShuffleNet shuffles channels: 0.8 of a static build, a call for each reshape."""
    n = tir.Var("batch", "int64")

    def program(emit, x, y):
        z = emit(op.reshape(emit(op.concat([x, y], axis=1)), (n, 2, 3, 4, 5)))
        z = emit(op.reshape(emit(op.permute_dims(z, [0, 2, 1, 3, 4])), (n, 6, 4, 5)))
        return emit(op.nn.relu(z))

    mod = module(program, x=(n, 3, 4, 5), y=(n, 3, 4, 5))
    done = ScheduleRest(host_target())(mod)
    assert sum(isinstance(f, tir.PrimFunc) for f in done.functions.values()) == 1
    library = selfbyoc.build(mod, composites=[])
    assert library.unscheduled == {}
    for size in SIZES:
        x, y = normal(size, size, 3, 4, 5), normal(size + 1, size, 3, 4, 5)
        whole = np.concatenate([x, y], axis=1).reshape(size, 2, 3, 4, 5).swapaxes(1, 2)
        np.testing.assert_array_equal(library(x, y)[0], np.maximum(whole.reshape(size, 6, 4, 5), 0))


def test_a_largest_place_of_an_open_size():
    """Its places have 64 bits, and so has its loop."""
    n = tir.Var("n", "int64")
    mod = module(lambda emit, x: emit(op.argmax(x, axis=1)), x=(5, n))
    library = selfbyoc.build(mod, composites=[])
    assert library.unscheduled == {}
    for size in SIZES:
        x = normal(size, 5, size)
        np.testing.assert_array_equal(library(x)[0], x.argmax(1))
    with pytest.raises(InputError, match=r"^size n: expected 1 or more$"):
        library(normal(0, 5, 0))


def test_names_for_c():
    """A size is called as errors say it, `batch * 12`; C wants an identifier."""
    n = tir.Var("batch", "int64")

    def program(emit, x):
        heads = emit(op.reshape(x, (17, n * 12, 8)))
        return emit(op.exp(emit(op.permute_dims(heads, [1, 0, 2]))))

    done = ScheduleRest(tvm.target.Target("c"))(module(program, x=(17, n, 96)))
    functions = [f for f in done.functions.values() if isinstance(f, tir.PrimFunc)]
    names = {name for func in functions for name in symbols(func)}
    assert "batch_12" in names
    assert all(map(str.isidentifier, names))


def test_heads_apart():
    """TVM hands `batch` to a transpose of batch * 12 heads; it is scheduled by the heads."""
    n = tir.Var("batch", "int64")

    def program(emit, x):
        heads = emit(op.reshape(x, (17, n * 12, 8)))
        return emit(op.exp(emit(op.permute_dims(heads, [1, 0, 2]))))

    library = selfbyoc.build(module(program, x=(17, n, 96)), composites=[])
    assert library.unscheduled == {}
    for size in SIZES:
        x = normal(size, 17, size, 96)
        expected = np.exp(x.astype("float64").reshape(17, size * 12, 8).transpose(1, 0, 2))
        np.testing.assert_allclose(library(x)[0], expected, rtol=2e-6)


@pytest.mark.parametrize("axis", [0, 1])
def test_two_open_sizes_joined(axis):
    """Their sum is the sum of two symbols, which may have one name."""
    m, n = (tir.Var("rows", "int64") for _ in range(2))
    shapes = [(m, 37), (n, 37)] if axis == 0 else [(37, m), (37, n)]
    mod = module(lambda emit, x, y: emit(op.concat([x, y], axis=axis)), x=shapes[0], y=shapes[1])
    rest = ScheduleRest(host_target())
    rest(mod)
    assert rest.unscheduled == {}
    m, n = tir.Var("m", "int64"), tir.Var("n", "int64")
    shapes = [(m, 37), (n, 37)] if axis == 0 else [(37, m), (37, n)]
    mod = module(lambda emit, x, y: emit(op.concat([x, y], axis=axis)), x=shapes[0], y=shapes[1])
    library = selfbyoc.build(mod, composites=[])
    assert library.unscheduled == {}
    for first, second in ((1, 1), (3, 8), (40, 2), (64, 64)):
        x, y = (
            normal(first, *(first, 37)[:: 1 - 2 * axis]),
            normal(9, *(second, 37)[:: 1 - 2 * axis]),
        )
        np.testing.assert_array_equal(library(x, y)[0], np.concatenate([x, y], axis=axis))


def test_a_number_that_a_sum_tells():
    """A causal mask over a past: where queries begin is `past` of the scores' `past + n`."""
    n, past = (tir.Var(name, "int64") for name in ("n", "past"))

    def program(emit, x, y):
        keys = emit(op.permute_dims(emit(op.concat([y, x], 0))))
        begin = emit(op.shape_to_tensor(relax.ShapeExpr([past])))
        at = emit(op.expand_dims(emit(op.add(emit(op.arange(0, n, 1, "int64")), begin)), 1))
        every = emit(op.expand_dims(emit(op.arange(0, past + n, 1, "int64")), 0))
        seen = emit(op.less_equal(every, at))
        hidden = emit(op.where(seen, relax.const(0.0), relax.const(-9.0)))
        return emit(op.add(emit(op.matmul(x, keys)), hidden))

    library = selfbyoc.build(module(program, x=(n, 8), y=(past, 8)), composites=())
    assert library.unscheduled == {}
    for size, before in ((1, 0), (5, 0), (1, 4), (7, 19)):
        x, y = normal(1, size, 8), normal(2, before, 8)
        at = np.arange(before, before + size)[:, None]
        hidden = np.where(np.arange(before + size) <= at, 0, -9)
        expected = x.astype("float64") @ np.concatenate([y, x]).T + hidden
        assert first_wrong(library(x, y)[0], expected, "float32", 9) is None


def test_numbers_that_a_result_alone_tells():
    """A function that is given no tensor of these sizes."""
    n, past = (tir.Var(name, "int64") for name in ("n", "past"))

    def program(emit, x, y):
        queries = emit(op.expand_dims(emit(op.arange(0, n, 1, "int64")), 1))
        keys = emit(op.expand_dims(emit(op.arange(0, past + n, 1, "int64")), 0))
        begin = emit(op.shape_to_tensor(relax.ShapeExpr([past])))
        return emit(op.subtract(keys, emit(op.add(queries, begin))))

    library = selfbyoc.build(module(program, x=(n, 8), y=(past, 8)), composites=())
    assert library.unscheduled == {}
    for size, before in ((1, 0), (5, 0), (1, 4), (7, 19)):
        (found,) = library(normal(1, size, 8), normal(2, before, 8))
        at = np.arange(before, before + size)[:, None]
        np.testing.assert_array_equal(found, np.arange(before + size) - at)


def test_an_item_of_an_open_batch():
    """An index of 64 bits in the kernel: its sizes are of 64 bits then, as its loops are."""
    n = tir.Var("batch", "int64")
    index = relax.const(2, "int64")
    mod = module(lambda emit, x: emit(op.take(x, index, axis=0, mode="fast")), x=(3, 17, n, 40))
    library = selfbyoc.build(mod, composites=[])
    assert library.unscheduled == {}
    for size in SIZES:
        x = normal(size, 3, 17, size, 40)
        np.testing.assert_array_equal(library(x)[0], x[2])


def test_what_does_not_compile_is_known_by_name():
    """Functions that nobody but the module calls compile alone as well as any other."""
    n = tir.Var("n", "int64")
    mod = module(lambda emit, x: emit(op.exp(emit(op.permute_dims(x)))), x=(n, 33))
    rest = ScheduleRest(host_target())(mod)
    assert any(isinstance(func, tir.PrimFunc) for func in rest.functions.values())
    assert failing(rest, host_target()) == {}
