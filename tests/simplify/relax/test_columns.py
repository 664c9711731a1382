"""Columns of a product that are only read apart are products of their own."""

import numpy as np
import pytest
from tvm import relax, tirx

import selfbyoc
from selfbyoc.runtime.tolerance import tolerance
from selfbyoc.simplify.relax.columns import columns_apart

ROWS, IN, HEADS, DEPTH = 18, 12, 3, 10
COLUMNS = 3 * HEADS * DEPTH


def arrays():
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((COLUMNS, IN)).astype("float32")
    return weight, rng.standard_normal(COLUMNS).astype("float32")


def module(write, rows=ROWS, constant=True):
    """main: exp of what `write` takes out of a product with its bias, [rows, columns]."""
    weight, bias = arrays()
    x = relax.Var("x", relax.TensorType((rows, IN), "float32"))
    given = relax.Var("w", relax.TensorType(weight.shape, "float32"))
    w = relax.const(weight) if constant else given
    builder = relax.BlockBuilder()
    emit = builder.emit
    with builder.function("main", [x] if constant else [x, w]):
        with builder.dataflow():
            product = emit(relax.op.matmul(x, emit(relax.op.permute_dims(w))))
            y = emit(relax.op.add(relax.const(bias), product))
            parts = write(emit, y)
            out = builder.emit_output(relax.Tuple([emit(relax.op.exp(p)) for p in parts]))
        builder.emit_func_output(out)
    return relax.transform.Normalize()(builder.get())


def heads(emit, y, rows=ROWS):
    """[3, 1, heads, rows, depth], as timm has it."""
    rows_of_one = emit(relax.op.reshape(y, (1, rows, COLUMNS)))
    shaped = emit(relax.op.reshape(rows_of_one, (1, rows, 3, HEADS, DEPTH)))
    return emit(relax.op.permute_dims(shaped, [2, 0, 3, 1, 4]))


def sliced(emit, y, axis, begin, end):
    return emit(relax.op.strided_slice(y, [axis], [begin], [end]))


def unbound(emit, y):
    turned = heads(emit, y)
    return [emit(relax.op.squeeze(sliced(emit, turned, 0, n, n + 1), [0])) for n in range(3)]


def taken(emit, y):
    turned = heads(emit, y)
    return [emit(relax.op.take(turned, relax.const(n, "int64"), 0)) for n in range(3)]


def split(emit, y):
    parts = emit(relax.op.split(y, 3, axis=-1))
    return [emit(parts[n]) for n in range(3)]


def uneven(emit, y):
    return [sliced(emit, y, 1, 0, 17), sliced(emit, y, 1, 17, 73), sliced(emit, y, 1, 73, 89)]


def kept(emit, y):
    """A slice of one that keeps its axis."""
    turned = heads(emit, y)
    return [sliced(emit, turned, 0, 0, 1), sliced(emit, turned, 0, 1, 3)]


def expected(x):
    weight, bias = (a.astype("float64") for a in arrays())
    y = x @ weight.T + bias
    turned = y.reshape(1, ROWS, 3, HEADS, DEPTH).transpose(2, 0, 3, 1, 4)
    whole = {
        unbound: list(turned),
        taken: list(turned),
        split: np.split(y, 3, axis=1),
        uneven: [y[:, :17], y[:, 17:73], y[:, 73:89]],
        kept: [turned[:1], turned[1:]],
    }
    return whole, np.abs(y).max()


def products(mod):
    values = [b.value for block in mod["main"].body.blocks for b in block.bindings]
    return sum(isinstance(v, relax.Call) and v.op.name == "relax.matmul" for v in values)


@pytest.mark.parametrize("write", [unbound, taken, split, uneven, kept])
def test_parts_are_products(write):
    mod = module(write)
    count = 2 if write is kept else 3
    assert products(columns_apart(mod)) == count
    parted = selfbyoc.partition_for_tefuse(mod)
    report = selfbyoc.report(parted)
    assert report.counts == {"dense": count}
    assert not {"strided_slice", "split", "take", "squeeze"} & set(report.left)
    x = np.random.default_rng(1).standard_normal((ROWS, IN)).astype("float32")
    whole, largest = expected(x)
    for found, wanted in zip(selfbyoc.build(parted)(x), whole[write], strict=True):
        error = tolerance("float32", IN) * largest * np.exp(wanted)
        assert found.shape == wanted.shape
        assert (np.abs(found - np.exp(wanted)) <= error).all()


def read_whole(emit, y):
    return [y, *split(emit, y)]


def overlapping(emit, y):
    return [sliced(emit, y, 1, 0, 40), sliced(emit, y, 1, 30, 90)]


def alone(emit, y):
    return [sliced(emit, y, 1, 0, 40)]


def narrow(emit, y):
    return [sliced(emit, y, 1, 0, 80), sliced(emit, y, 1, 80, 90)]


def of_rows(emit, y):
    return [sliced(emit, y, 0, 0, 9), sliced(emit, y, 0, 9, ROWS)]


def in_steps(emit, y):
    return [emit(relax.op.strided_slice(y, [1], [n], [COLUMNS], [2])) for n in (0, 1)]


def inner(emit, y):
    """Columns that do not lie together."""
    shaped = emit(relax.op.reshape(y, (ROWS, 18, 5)))
    return [sliced(emit, shaped, 2, 0, 2), sliced(emit, shaped, 2, 2, 5)]


def changed(emit, y):
    return split(emit, emit(relax.op.exp(y)))


@pytest.mark.parametrize(
    "write", [read_whole, overlapping, alone, narrow, of_rows, in_steps, inner, changed]
)
def test_other_slices_stay(write):
    mod = module(write)
    assert columns_apart(mod).same_as(mod)


def test_few_rows_and_weights_that_are_inputs_stay():
    for mod in (module(split, rows=1), module(split, constant=False)):
        assert columns_apart(mod).same_as(mod)


def test_a_split_that_nobody_reads_stays():
    def write(emit, y):
        emit(relax.op.split(y, 3, axis=-1))
        return [emit(relax.op.exp(relax.const(1.0, "float32")))]

    mod = module(write)
    assert columns_apart(mod).same_as(mod)


def test_a_slice_of_unknown_bounds_stays():
    length = tirx.Var("n", "int64")
    x = relax.Var("x", relax.TensorType((ROWS, IN), "float32"))
    k = relax.Var("k", relax.TensorType((length,), "float32"))
    builder = relax.BlockBuilder()
    emit = builder.emit
    with builder.function("main", [x, k]):
        with builder.dataflow():
            y = emit(relax.op.matmul(x, relax.const(arrays()[0].T.copy())))
            parts = [emit(relax.op.strided_slice(y, [1], [a], [b])) for a, b in ((0, 30), (30, 90))]
            parts[1] = emit(relax.op.strided_slice(y, [1], [30], [length]))
            out = builder.emit_output(relax.Tuple(parts))
        builder.emit_func_output(out)
    mod = relax.transform.Normalize()(builder.get())
    assert columns_apart(mod).same_as(mod)


def test_slices_in_another_block_stay():
    """What the product reads is known in its own dataflow block only."""
    x = relax.Var("x", relax.TensorType((ROWS, IN), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            inside = builder.emit(relax.op.nn.relu(x))
            weight = relax.const(arrays()[0].T.copy())
            y = builder.emit_output(relax.op.matmul(inside, weight))
        builder.emit(relax.op.assert_op(relax.const(True, "bool"), format="never"))
        with builder.dataflow():
            parts = [
                builder.emit(relax.op.strided_slice(y, [1], [a], [b]))
                for a, b in ((0, 30), (30, 90))
            ]
            out = builder.emit_output(relax.Tuple(parts))
        builder.emit_func_output(out)
    mod = relax.transform.Normalize()(builder.get())
    assert columns_apart(mod).same_as(mod)
    given = np.random.default_rng(1).standard_normal((ROWS, IN)).astype("float32")
    found = np.concatenate(selfbyoc.build(mod)(given), 1)
    wanted = np.maximum(given, 0).astype("float64") @ arrays()[0].T
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-4)


def test_parts_of_an_open_batch_are_products():
    """As torch.export writes a linear layer on three axes: its rows are merged for the product."""
    batch, rows = tirx.Var("batch", "int64"), 6
    weight, bias = arrays()
    x = relax.Var("x", relax.TensorType((batch, rows, IN), "float32"))
    builder = relax.BlockBuilder()
    emit = builder.emit
    with builder.function("main", [x]):
        with builder.dataflow():
            merged = emit(relax.op.reshape(x, (batch * rows, IN)))
            matrix = emit(relax.op.permute_dims(relax.const(weight)))
            product = emit(relax.op.matmul(merged, matrix))
            y = emit(relax.op.add(product, relax.const(bias)))
            y = emit(relax.op.reshape(y, (batch, rows, COLUMNS)))
            y = emit(relax.op.reshape(y, (batch, rows, 3, HEADS, DEPTH)))
            turned = emit(relax.op.permute_dims(y, [2, 0, 3, 1, 4]))
            parts = [sliced(emit, turned, 0, n, n + 1) for n in range(3)]
            parts = [emit(relax.op.squeeze(part, [0])) for part in parts]
            out = builder.emit_output(relax.Tuple([emit(relax.op.exp(p)) for p in parts]))
        builder.emit_func_output(out)
    mod = relax.transform.Normalize()(builder.get())
    assert products(columns_apart(mod)) == 3
    library = selfbyoc.build(mod)
    assert library.report.counts == {"dense": 3}
    for size in (1, 5):
        given = np.random.default_rng(size).standard_normal((size, rows, IN)).astype("float32")
        whole = given.astype("float64") @ weight.T.astype("float64") + bias
        wanted = whole.reshape(size, rows, 3, HEADS, DEPTH).transpose(2, 0, 3, 1, 4)
        largest = np.abs(whole).max()
        for found, part in zip(library(given), wanted, strict=True):
            assert (
                np.abs(found - np.exp(part)) <= tolerance("float32", IN) * largest * np.exp(part)
            ).all()
