"""Tables of embeddings that a product multiplies by, too, are one constant, on both generations."""

import re

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import selfbyoc
from selfbyoc.errors import InputError
from selfbyoc.ir.generation import ir
from selfbyoc.partition.generation import ir as partition
from selfbyoc.simplify.few_bits import around_zero, in_groups
from selfbyoc.tvm import GENERATION

UNITS, DEPTH, PLACES = 4099, 257, 5  # a tail in every tile
IDS = np.array([[0, 4098, 17, 2049, 17]])


def table(units=UNITS, depth=DEPTH, seed=0):
    found = np.random.default_rng(seed).standard_normal((units, depth)).astype("float32")
    return found / np.float32(np.sqrt(depth))


def tied(rows=None, weight=None, turned=False, places=PLACES, axis=0):
    """Gather(rows, ids) + 0.5, multiplied by weight^T, which is the table or another constant."""
    rows = table() if rows is None else rows
    values = {"rows": rows, "half": np.array(0.5, "float32")}
    name = "rows"
    if weight is not None:
        name, values["weight"] = "weight", weight.T.copy() if turned else weight
    nodes = [
        helper.make_node("Gather", ["rows", "ids"], ["x"], axis=axis),
        helper.make_node("Add", ["x", "half"], ["moved"]),
        *([] if turned else [helper.make_node("Transpose", [name], ["turned"], perm=[1, 0])]),
        helper.make_node("MatMul", ["moved", name if turned else "turned"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes, "tied", [helper.make_tensor_value_info("ids", TensorProto.INT64, [1, places])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, places, rows.shape[0]])],
        [numpy_helper.from_array(array, key) for key, array in values.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    onnx.checker.check_model(model)
    return model


def expected(rows, weight, ids=IDS):
    return (rows[ids].astype("float64") + 0.5) @ weight.T.astype("float64")


def kinds(mod):
    return [call.kind for call in ir.read(partition.prepare(mod, None)["main"]).ops]


def megabytes(library, path):
    library.export_library(path)
    return path.stat().st_size / 1e6


@pytest.mark.parametrize("copy", ["none", "as it is", "turned"])
def test_one_constant(copy, tmp_path):
    given = {} if copy == "none" else {"weight": table(), "turned": copy == "turned"}
    library = selfbyoc.build(selfbyoc.from_onnx(tied(**given)))
    assert library.report.counts == {"embedding": 1, "dense": 1}
    np.testing.assert_allclose(library(IDS)[0], expected(table(), table()), rtol=1e-4, atol=1e-5)
    assert megabytes(library, tmp_path / "model.so") < 1.1 * table().nbytes / 1e6
    loaded = selfbyoc.load(tmp_path / "model.so")
    np.testing.assert_array_equal(loaded(IDS)[0], library(IDS)[0])


def test_halves(tmp_path):
    library = selfbyoc.build(selfbyoc.from_onnx(tied()), weights="float16")
    assert library.report.counts == {"embedding": 1, "dense": 1}
    halves = table().astype("float16")
    np.testing.assert_allclose(library(IDS)[0], expected(halves, halves), rtol=1e-4, atol=1e-5)
    assert megabytes(library, tmp_path / "model.so") < 1.1 * halves.nbytes / 1e6


@pytest.mark.skipif(GENERATION == "relay", reason="bfloat16 needs Relax")
def test_bfloat16(tmp_path):
    library = selfbyoc.build(selfbyoc.from_onnx(tied()), weights="bfloat16")
    assert library.report.counts == {"embedding": 1, "dense": 1}
    np.testing.assert_allclose(library(IDS)[0], expected(table(), table()), atol=0.05)
    assert megabytes(library, tmp_path / "model.so") < 0.6 * table().nbytes / 1e6


@pytest.mark.parametrize("activations", ["float32", "int8"])
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize(("weights", "bits"), [("int4", 4), ("int8", 8)])
def test_few_bits(weights, bits, symmetric, activations, tmp_path):
    how = {"weights": weights, "symmetric": symmetric, "activations": activations}
    library = selfbyoc.build(selfbyoc.from_onnx(tied()), **how)
    assert library.report.counts == {"embedding_few_bits": 1, "dense_few_bits": 1}
    rows = as_floats(table(), bits, symmetric)
    tolerance = {"rtol": 1e-4, "atol": 1e-4} if activations == "float32" else {"atol": 0.05}
    np.testing.assert_allclose(library(IDS)[0], expected(rows, rows), **tolerance)
    groups = -(-DEPTH // 32)
    levels = UNITS * groups * 32 * bits / 8e6
    factors = UNITS * groups * (6 if symmetric else 11) / 1e6  # the product's as floats, and bytes
    assert megabytes(library, tmp_path / "model.so") < levels + factors + 0.2


def test_a_table_by_itself_has_8_bits(tmp_path):
    other = table(seed=1)
    library = selfbyoc.build(
        selfbyoc.from_onnx(tied(weight=other)), weights="int4", symmetric=True
    )  # fmt: skip
    assert library.report.counts == {"embedding_few_bits": 1, "dense_few_bits": 1}
    wanted = expected(as_floats(table(), 8, True), as_floats(other, 4, True))
    np.testing.assert_allclose(library(IDS)[0], wanted, rtol=1e-4, atol=1e-4)


def as_floats(weight, bits, symmetric, group=32):
    levels, scale, zero = (around_zero if symmetric else in_groups)(weight, bits, group)
    at = np.arange(weight.shape[1]) // group
    points = zero[:, at if zero.size > 1 else [0]].astype("float64")
    return (levels - points) * scale.astype("float64")[:, at]


def nearly(rows):
    found = rows.copy()
    found[-1, -1] += 1
    return found


@pytest.mark.parametrize(
    ("given", "weights"),
    [
        ({"weight": nearly(table())}, "float32"),
        ({"rows": table(100, 100)}, "float32"),  # too small to matter
        ({"rows": table(100, 100)}, "float16"),
        ({"rows": table(1049, 1000, 2), "weight": table(9, 1000)}, "float32"),
        ({"rows": table(8200, 128, 3), "weight": table(9, 128)}, "float16"),  # narrow: positions
    ],
)
def test_what_stays(given, weights):
    model = tied(**given)
    model.graph.output[0].type.tensor_type.shape.dim[2].dim_value = given.get(
        "weight", given.get("rows")
    ).shape[0]
    mod = selfbyoc.from_onnx(model)
    assert "embedding" not in kinds(mod)
    library = selfbyoc.build(mod, weights=weights)
    assert "embedding" not in library.report.counts
    rows = given.get("rows", table())
    ids = IDS % rows.shape[0]
    wanted = expected(rows, given.get("weight", rows), ids)
    np.testing.assert_allclose(library(ids)[0], wanted, rtol=1e-3, atol=0.02)


def test_ids_out_of_range():
    """They are told of by each library, whoever partitioned; a kernel reads a row that exists."""
    mod = selfbyoc.from_onnx(tied())
    for library in (
        selfbyoc.build(mod),
        selfbyoc.build(selfbyoc.partition_for_tefuse(mod)),
        selfbyoc.build(mod, weights="int4"),
    ):
        with pytest.raises(InputError, match=re.escape(f"{UNITS}")):
            library(np.full_like(IDS, UNITS))


def test_without_the_composite():
    """The op is TVM's to compute then."""
    composites = [c for c in selfbyoc.BUILTIN if not c.name.startswith("embedding")]
    for weights in ("float32", "float16", "int4"):
        library = selfbyoc.build(
            selfbyoc.from_onnx(tied()), weights=weights, composites=composites
        )  # fmt: skip
        assert len(library.report.counts) == 1
        wanted = expected(table(), table())
        atol = {"float32": 1e-5, "float16": 1e-2, "int4": 1.0}[weights]
        np.testing.assert_allclose(library(IDS)[0], wanted, rtol=1e-4, atol=atol)
        with pytest.raises(InputError, match=re.escape(f"{UNITS}")):
            library(np.full_like(IDS, UNITS))


@pytest.mark.parametrize("cpu", ["haswell", "x86-64"])
@pytest.mark.parametrize("weights", ["float32", "float16", "int4"])
def test_of_another_cpu(cpu, weights):
    """Vectors of 256 and of 128 bits, with and without instructions of halves."""
    how = {"activations": "int8", "symmetric": True} if weights == "int4" else {}
    library = selfbyoc.build(
        selfbyoc.from_onnx(tied()), f"llvm -mcpu={cpu}", weights=weights, **how
    )  # fmt: skip
    assert len(library.report.counts) == 2
    rows = as_floats(table(), 4, True) if how else table()
    atol = {"float32": 1e-5, "float16": 1e-2, "int4": 0.05}[weights]
    np.testing.assert_allclose(library(IDS)[0], expected(rows, rows), rtol=1e-4, atol=atol)


@pytest.mark.skipif(GENERATION == "relay", reason="Relay has no mode beside it")
def test_a_model_that_clips_by_itself():
    """Ids out of range are no mistake there."""
    from tvm import relax

    rows = relax.const(table())
    builder, ids = relax.BlockBuilder(), relax.Var("ids", relax.TensorType((1, 5), "int64"))
    with builder.function("main", [ids]):
        x = builder.emit(relax.op.take(rows, ids, axis=0, mode="clip"))
        y = builder.emit(relax.op.matmul(x, relax.op.permute_dims(rows)))
        builder.emit_func_output(y)
    library = selfbyoc.build(builder.get())
    assert library.report.counts == {"dense": 1}
    found = library(np.array([[0, UNITS, -1, 3, 10**6]]))[0]
    wanted = table()[[[0, UNITS - 1, 0, 3, UNITS - 1]]].astype("float64") @ table().T
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.skipif(GENERATION == "relay", reason="open sizes are Relax's")
def test_of_any_length():
    mod = selfbyoc.from_onnx(tied(places="n"), sizes={"n": (1, 64)})
    library = selfbyoc.build(mod)
    assert library.report.counts == {"embedding": 1, "dense": 1}
    for length in (1, 2, 33):
        ids = np.random.default_rng(length).integers(0, UNITS, (1, length))
        wanted = expected(table(), table(), ids)
        np.testing.assert_allclose(library(ids)[0], wanted, rtol=1e-4, atol=1e-5)
