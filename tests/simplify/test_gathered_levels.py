"""Tables of levels that ONNX models gather rows of: the table stays in bytes, and the rows are what
NumPy makes of them, to the bit.
"""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from levels import F32
from onnx import TensorProto
from onnx_models import FLOAT, INT64, model, value

import selfbyoc
from selfbyoc.errors import InputError
from selfbyoc.ir.generation import ir as reader
from selfbyoc.partition.generation import ir

PLACES = np.array([[0, 49, -50, 3], [7, -1, 3, 12]])  # negative ones count from the end
UNITS = 6


@dataclass(frozen=True)
class Table:
    """Levels, dequantised along an axis, and gathered along one."""

    dtype: str = "uint8"
    shape: tuple[int, ...] = (50, UNITS)
    along: int | None = None  # the axis of the scales; None: one number
    gathered: int = 0
    zero: int | None = 114  # None: the node has none
    zeros_differ: bool = False
    opset: int = 17

    def values(self):
        """Levels, scale, zero point."""
        rng, limits = np.random.default_rng(4), np.iinfo(self.dtype)
        count = () if self.along is None else (self.shape[self.along],)
        levels = rng.integers(limits.min, limits.max + 1, self.shape).astype(self.dtype)
        zero = np.full(count, self.zero or 0, self.dtype)
        if self.zeros_differ:
            zero = zero + np.arange(zero.size).astype(self.dtype)
        return levels, np.asarray(rng.uniform(0.01, 0.2, count), F32), zero

    def floats(self):
        """In NumPy."""
        levels, *factors = self.values()
        column = [-1 if n == self.along else 1 for n in range(levels.ndim)]
        scale, zero = (f.reshape(column) if f.ndim else f for f in factors)
        return (levels.astype("int32") - zero).astype(F32) * scale

    def rows(self, at):
        return np.take(self.floats(), at, self.gathered)

    def nodes(self):
        """-> nodes that gather rows, and their constants."""
        names = ["table", "scale", "zero"][: 2 if self.zero is None else 3]
        axis = {} if self.along is None else {"axis": self.along}
        return [
            ("DequantizeLinear", names, "floats", axis),
            ("Gather", ["floats", "at"], "rows", {"axis": self.gathered}),
        ], dict(zip(names, self.values(), strict=False))

    def model(self, at, *more, outputs=(), **weights):
        nodes, own = self.nodes()
        rank = len(self.shape) + len(at) - 1
        ends = [value("rows", FLOAT, *["_"] * rank), *outputs]
        inputs = [value("at", INT64, *at)]
        return model([*nodes, *more], inputs, ends, opset=self.opset, **own, **weights)


ONE = Table()
BY_ROW = Table("int8", along=0, zero=3)
TABLES = {
    "one scale": ONE,
    "one scale, opset 10": replace(ONE, opset=10),
    "opset 21": replace(BY_ROW, opset=21),
    "int8": replace(ONE, dtype="int8", zero=0),
    "int8 off zero": replace(ONE, dtype="int8", zero=-7),
    "no zero point": replace(ONE, zero=None),
    "by column": Table(along=1),
    "by column, zeros too": Table(along=1, zeros_differ=True),
    "by row": BY_ROW,
    "by row, zeros too": replace(BY_ROW, zeros_differ=True),
    "by row, around zero": replace(BY_ROW, zero=0),
    "by row, no zero point": replace(BY_ROW, dtype="uint8", zero=None),
    "columns of one scale": Table(shape=(UNITS, 50), gathered=1),
    "columns by row": Table(shape=(UNITS, 50), gathered=1, along=0),
    "columns by column": Table(shape=(UNITS, 50), gathered=1, along=1, zeros_differ=True),
    "from the end": Table(shape=(UNITS, 50), gathered=-1, along=0),
    "between axes": Table(shape=(3, 50, UNITS), gathered=1, along=1),
    "axis behind": Table(shape=(3, 50, UNITS), gathered=1, along=2, zeros_differ=True),
    "axis before": Table(shape=(3, 50, UNITS), gathered=1, along=0),
    "numbers": Table(shape=(50,)),
    "numbers of their own": Table(shape=(50,), along=0),
}


SHAPES = {table.shape for table in TABLES.values() if len(table.shape) > 1}


def gathered(mod):
    """Before anything is matched: the dtypes of what is gathered from, and of all tables."""
    graph = reader.read(ir.prepare(mod, None)["main"], raw=True)
    takes = [call.inputs[0].dtype for call in graph.ops if call.kind == "take"]
    tables = {v.dtype for call in graph.ops for v in call.inputs if tuple(v.shape) in SHAPES}
    return takes, tables


@pytest.mark.parametrize("name", TABLES)
def test_a_table_stays_in_bytes(name):
    table = TABLES[name]
    mod = selfbyoc.from_onnx(table.model(PLACES.shape))
    assert table.dtype in gathered(mod)[0]
    if len(table.shape) > 1:
        assert gathered(mod)[1] == {table.dtype}
    np.testing.assert_array_equal(selfbyoc.build(mod)(PLACES)[0], table.rows(PLACES))


@pytest.mark.parametrize("table", [ONE, Table(along=1), BY_ROW], ids=["one", "by column", "by row"])
@pytest.mark.parametrize("at", [np.array(-2), np.array([5, -50, 49])], ids=["scalar", "row"])
def test_places_of_other_ranks(table, at):
    found = selfbyoc.build(selfbyoc.from_onnx(table.model(at.shape)))(at)[0]
    np.testing.assert_array_equal(found, table.rows(at))


@pytest.mark.parametrize("table", [ONE, BY_ROW], ids=["one scale", "by row"])
def test_places_of_open_sizes(table):
    mod = selfbyoc.from_onnx(table.model(["n", "m"]))
    assert "float32" not in gathered(mod)[0][:1]
    library = selfbyoc.build(mod)
    for at in (PLACES, PLACES[:1, :3]):
        np.testing.assert_array_equal(library(at)[0], table.rows(at))


@pytest.mark.parametrize("table", [ONE, BY_ROW], ids=["one scale", "by row"])
@pytest.mark.parametrize("place", [50, -51])
def test_places_that_are_none(table, place):
    library = selfbyoc.build(selfbyoc.from_onnx(table.model((1,))))
    with pytest.raises(InputError, match=str(place)):
        library(np.array([place]))


def test_levels_of_rows_are_a_kernels():
    """As ONNX Runtime quantises a lookup: its rows are quantised by the scale of the table."""
    rng = np.random.default_rng(7)
    weight = rng.integers(-127, 128, (UNITS, 16)).astype("int8")
    scale, middle = np.array(0.02, F32), np.array(0, "int8")
    product = model(
        [
            *ONE.nodes()[0],
            ("QuantizeLinear", ["rows", "scale", "zero"], "levels", {}),
            ("DequantizeLinear", ["levels", "scale", "zero"], "x", {}),
            ("DequantizeLinear", ["weight", "s", "z"], "w", {}),
            ("MatMul", ["x", "w"], "y", {}),
        ],
        [value("at", INT64, 2, 4)], [value("y", FLOAT, 2, 4, 16)],
        weight=weight, s=scale, z=middle, **ONE.nodes()[1],
    )  # fmt: skip
    mod = selfbyoc.from_onnx(product)
    library = selfbyoc.build(mod)
    assert library.report.counts == {"dense_int8": 1}
    assert not any(kind in ("quantize", "dequantize") for kind in library.report.left)
    wanted = ONE.rows(PLACES).astype("float64") @ (weight.astype("float64") * scale)
    np.testing.assert_allclose(library(PLACES)[0], wanted, rtol=0, atol=1e-5 * abs(wanted).max())


@pytest.mark.parametrize("table", [replace(ONE, dtype="int8", zero=0), ONE], ids=["int8", "uint8"])
def test_a_table_with_a_second_reader(table):
    """A language model's last product is often of its embeddings."""
    more = [("Transpose", ["floats"], "turned", {"perm": [1, 0]}),
            ("MatMul", ["rows", "turned"], "y", {})]  # fmt: skip
    proto = table.model(PLACES.shape, *more, outputs=[value("y", FLOAT, 2, 4, 50)])
    mod = selfbyoc.from_onnx(proto)
    assert gathered(mod)[0] == [table.dtype]
    rows, found = selfbyoc.build(mod)(PLACES)
    np.testing.assert_array_equal(rows, table.rows(PLACES))
    wanted = table.rows(PLACES).astype("float64") @ table.floats().T.astype("float64")
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5 * abs(wanted).max())


def test_a_table_that_is_read_whole():
    """It is a float table, and what is gathered is of bytes nevertheless."""
    more = [("Relu", ["floats"], "y", {})]
    proto = ONE.model(PLACES.shape, *more, outputs=[value("y", FLOAT, *ONE.shape)])
    rows, whole = selfbyoc.build(selfbyoc.from_onnx(proto))(PLACES)
    np.testing.assert_array_equal(rows, ONE.rows(PLACES))
    np.testing.assert_array_equal(whole, np.maximum(ONE.floats(), 0))


def test_a_file_holds_bytes(tmp_path):
    table = Table(shape=(20_000, 64), along=0)
    mod = selfbyoc.from_onnx(table.model(PLACES.shape))
    selfbyoc.build(mod).export_library(tmp_path / "rows.so")
    assert (tmp_path / "rows.so").stat().st_size < 1.5 * table.values()[0].nbytes
    found = selfbyoc.load(tmp_path / "rows.so")(PLACES)[0]
    np.testing.assert_array_equal(found, table.rows(PLACES))


def test_known_places_are_gathered_once():
    """Nothing is left to compute where the indices are constants, too."""
    nodes, own = ONE.nodes()
    add = ("Add", ["x", "rows"], "y", {})
    x = value("x", FLOAT, 2, 4, UNITS)
    proto = model([*nodes, add], [x], [value("y", FLOAT, 2, 4, UNITS)], at=PLACES, **own)
    library = selfbyoc.build(selfbyoc.from_onnx(proto))
    assert "take" not in library.report.left
    given = np.ones((2, 4, UNITS), F32)
    np.testing.assert_array_equal(library(given)[0], given + ONE.rows(PLACES))


def test_an_input_is_dequantised_first():
    """Only constants: an input's levels stay as the model reads them."""
    nodes, own = ONE.nodes()
    del own["table"]
    inputs = [value("table", TensorProto.UINT8, *ONE.shape), value("at", INT64, 2, 4)]
    proto = model(nodes, inputs, [value("rows", FLOAT, 2, 4, UNITS)], **own)
    mod = selfbyoc.from_onnx(proto)
    assert gathered(mod)[0][-1:] == ["float32"]
    found = selfbyoc.build(mod)(ONE.values()[0], PLACES)[0]
    np.testing.assert_array_equal(found, ONE.rows(PLACES))
