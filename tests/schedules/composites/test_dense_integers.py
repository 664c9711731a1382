"""dense of bytes in int32: what brings its sums to 8 bits is in the kernel, and what is refused."""

import numpy as np
import pytest
from levels import bytes_of

import selfbyoc
from selfbyoc import op
from selfbyoc.schedules.composites.dense_integers import dense_integers

TYPES = {"x": ((5, 37), "int8"), "weight": ((21, 37), "int8"), "bias": ((21,), "int32")}


def sums(x, weight, bias):
    return op.bias_add(op.dense(x, weight, out_dtype="int32"), bias, axis=-1)


def byte(y):
    return op.cast(op.clip(y, a_min=-100, a_max=90), dtype="int8")


def shifted(x, weight, bias):
    return byte(op.right_shift(op.add(sums(x, weight, bias), 64), 7))


def leaky(x, weight, bias):
    y = op.right_shift(sums(x, weight, bias), 6)
    return byte(op.where(op.less(y, 0), op.right_shift(y, 3), y))


def arrays(seed=4, **dtypes):
    rng = np.random.default_rng(seed)
    given = {
        name: bytes_of(rng, shape, dtypes.get(name, "int8")) for name, (shape, _) in TYPES.items()
    }
    return {**given, "bias": given["bias"].astype("int32") * 100}


def in_numpy(program, x, weight, bias):
    total = x.astype("int64") @ weight.T.astype("int64") + bias
    y = (total + 64) >> 7 if program is shifted else total >> 6
    y = y if program is shifted else np.where(y < 0, y >> 3, y)
    return np.clip(y, -100, 90)


@pytest.mark.parametrize("constants", [(), ("weight", "bias")], ids=["given", "packed"])
@pytest.mark.parametrize("program", [shifted, leaky])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_narrowed(program, dtype, constants):
    given = arrays(x=dtype)
    types = {**TYPES, "x": (TYPES["x"][0], dtype)}
    mod = selfbyoc.emit(program, types, {name: given[name] for name in constants})
    library = selfbyoc.build(mod)
    assert library.report.counts == {"dense_integers": 1}
    assert not library.report.left
    inputs = {name: array for name, array in given.items() if name not in constants}
    np.testing.assert_array_equal(library(**inputs)[0], in_numpy(program, **given))


@pytest.mark.parametrize(
    ("weight", "sums_in", "said"),
    [("uint8", "int32", "a weight is of int8"), ("int8", "int16", "sums are int32, found int16")],
)
def test_refused(weight, sums_in, said):
    types = {**TYPES, "weight": (TYPES["weight"][0], weight)}
    del types["bias"]
    mod = selfbyoc.emit(lambda x, weight: op.dense(x, weight, out_dtype=sums_in), types)
    report = selfbyoc.explain(mod, composites=[dense_integers]).report
    assert report.counts == {}
    assert any(said in record.reason for record in report.records)
