"""Indices that are data: an error for an input's, and never memory of others."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import selfbyoc
from selfbyoc import Composite, emit, op
from selfbyoc.errors import InputError
from selfbyoc.tvm import GENERATION, tvm

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
ROWS = 50
TABLE = np.arange(ROWS * 4, dtype="float32").reshape(ROWS, 4)


def model(kind, shape, computed=False, **attrs):
    """`kind` of a table of 50 rows at `i`; computed: at what nobody knows before."""
    make, value = onnx.helper.make_node, onnx.helper.make_tensor_value_info
    given = [value("i", onnx.TensorProto.INT64, shape)]
    arrays = {"w": TABLE, "one": np.array(1, "int64")}
    inputs = ["w", "p" if computed else "i"]
    if kind.startswith("Scatter"):
        of_updates = [*shape[:-1], 4] if kind == "ScatterND" else shape
        arrays["u"] = np.full(of_updates, -1, "float32")
        inputs.append("u")
    nodes = [make("Mul", ["i", "one"], ["j"]), make("Mul", ["j", "i"], ["p"])] if computed else []
    nodes.append(make(kind, inputs, ["y"], **attrs))
    result = value("y", onnx.TensorProto.FLOAT, None)
    tensors = [onnx.numpy_helper.from_array(a, n) for n, a in arrays.items()]
    graph = onnx.helper.make_graph(nodes, "g", given, [result], tensors)
    opset = [onnx.helper.make_opsetid("", 17)]
    inferred = onnx.helper.make_model(graph, opset_imports=opset, ir_version=9)
    return onnx.shape_inference.infer_shapes(inferred)


def built(*args, **attrs):
    return selfbyoc.build(selfbyoc.from_onnx(model(*args, **attrs)), cache=False)


@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_an_index_of_nothing(dtype, tmp_path):
    library = built("Gather", [1, 3])
    assert library.index_bounds == {"i": (-ROWS, ROWS - 1)}
    np.testing.assert_array_equal(library(np.array([[0, 49, -50]]))[0], TABLE[[[0, 49, 0]]])
    library.export_library(tmp_path / "m.so")
    for each in (library, selfbyoc.load(tmp_path / "m.so")):
        for number in (50, -51):
            text = rf"input 'i': expected indices from -50 to 49, found {number} at \[0, 2\]"
            with pytest.raises(InputError, match=text):
                each(np.array([[0, 1, number]]))


def test_several_tables_and_other_roles():
    """The narrowest counts; what is no index alone has no bounds."""
    make, value = onnx.helper.make_node, onnx.helper.make_tensor_value_info
    arrays = {"w": TABLE, "v": TABLE[:7]}
    nodes = [
        make("Cast", ["i"], ["j"], to=onnx.TensorProto.INT64),
        make("Gather", ["w", "j"], ["a"]),
        make("Gather", ["v", "i"], ["b"]),
        make("Add", ["a", "b"], ["c"]),
        make("Cast", ["k"], ["l"], to=onnx.TensorProto.FLOAT),
        make("Add", ["c", "l"], ["y"]),
    ]
    shapes = {"i": [5], "k": [5, 4]}
    graph = onnx.helper.make_graph(
        nodes, "g", [value(n, onnx.TensorProto.INT32, shape) for n, shape in shapes.items()],
        [value("y", onnx.TensorProto.FLOAT, [5, 4])],
        [onnx.numpy_helper.from_array(a, n) for n, a in arrays.items()],
    )  # fmt: skip
    opset = [onnx.helper.make_opsetid("", 17)]
    mod = selfbyoc.from_onnx(onnx.helper.make_model(graph, opset_imports=opset, ir_version=9))
    library = selfbyoc.build(mod, cache=False)
    assert library.index_bounds == {"i": (-7, 6)}
    i, k = np.array([0, 6, -7, 3, -1], "int32"), np.full((5, 4), 1000, "int32")
    np.testing.assert_array_equal(library(i, k)[0], TABLE[i] + TABLE[:7][i] + k)


@pytest.mark.parametrize("mode", ["wrap", "clip"])
def test_a_model_may_say_what_other_indices_mean(mode):
    """On Relay clip is the default, and nobody can tell it from none."""
    if GENERATION == "relay":
        from tvm import relay

        w, i = relay.var("w", shape=(5, 3)), relay.var("i", shape=(4,), dtype="int64")
        mod = tvm.IRModule.from_expr(relay.Function([w, i], relay.take(w, i, axis=0, mode=mode)))
    else:
        from tvm import relax

        builder = relax.BlockBuilder()
        w, i = (
            relax.Var(name, relax.TensorType(shape, dtype))
            for name, shape, dtype in (("w", (5, 3), "float32"), ("i", (4,), "int64"))
        )
        with builder.function("main", [w, i]):
            with builder.dataflow():
                found = builder.emit_output(relax.op.take(w, i, axis=0, mode=mode))
            builder.emit_func_output(found)
        mod = builder.get()
    library, table = selfbyoc.build(mod, cache=False), np.arange(15, dtype="float32").reshape(5, 3)
    numbers = np.array([1, 7, 4, -2])
    if (GENERATION, mode) == ("relay", "clip"):
        with pytest.raises(InputError, match="expected indices from 0 to 4, found 7"):
            library(table, numbers)
        return
    (result,) = library(table, numbers)
    np.testing.assert_array_equal(result, np.take(table, numbers, 0, mode=mode))


def test_beside_kernels_of_several_results():
    def pattern(x, w):
        y = op.dense(x, w)
        return op.relu(y), y, op.tanh(y)

    def program(x, w):
        y = op.dense(x, w)
        return op.exp(op.relu(y)), op.softmax(y), op.exp(op.tanh(y))

    mod = emit(program, {"x": (3, 5), "w": (4, 5)})
    library = selfbyoc.build(mod, composites=[Composite("three", pattern)], cache=False)
    assert library.report.counts == {"three": 1}
    assert library.index_bounds == {}


@pytest.mark.parametrize("kind", ["GatherND", "ScatterND"])
def test_places_from_the_end(kind):
    """Which TVM 0.17's frontend takes for places before the first one."""
    (found,) = built(kind, [2, 1])(np.array([[-1], [3]]))
    wanted = TABLE[[-1, 3]] if kind == "GatherND" else TABLE.copy()
    if kind == "ScatterND":
        wanted[[-1, 3]] = -1
    np.testing.assert_array_equal(found, wanted)


KINDS = {
    "Gather": ([1, 3], {}),
    "GatherND": ([3, 1], {}),
    "GatherElements": ([50, 4], {"axis": 0}),
    "ScatterElements": ([3, 4], {"axis": 0}),
    "ScatterND": ([3, 1], {}),
}
PROGRAM = """
import json, sys
import numpy as np
sys.path.insert(0, {folder!r})
from test_indices import KINDS, TABLE, built
found = {{}}
for kind, (shape, attrs) in KINDS.items():
    library = built(kind, shape, computed=True, **attrs)
    assert not library.index_bounds, kind
    numbers = np.resize(np.array([2, 30_000, 7]), shape)
    result = library(numbers)[0]
    found[kind] = bool(np.isin(result, [*TABLE.ravel(), -1]).all())
print(json.dumps(found))
"""


def test_computed_indices_stay_in_the_table():
    """Of 9e8 rows past the end TVM alone reads, and writes: the process ends."""
    program = PROGRAM.format(folder=str(Path(__file__).parent))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[-1]) == dict.fromkeys(KINDS, True)
    assert "Fast mode" not in done.stderr


def values(*, opset=17, nodes, inputs, **weights):
    """A model of these (op, inputs, attributes), the last of which returns y."""
    make, value = onnx.helper.make_node, onnx.helper.make_tensor_value_info
    kinds = {"i": onnx.TensorProto.INT64}
    given = [value(n, kinds.get(n, onnx.TensorProto.FLOAT), s) for n, s in inputs.items()]
    made = [make(op, xs, ["y"], **attrs) for op, xs, attrs in nodes]
    tensors = [onnx.numpy_helper.from_array(a, n) for n, a in weights.items()]
    end = value("y", onnx.TensorProto.FLOAT, None)
    graph = onnx.helper.make_graph(made, "g", given, [end], tensors)
    opset = [onnx.helper.make_opsetid("", opset)]
    proto = onnx.helper.make_model(graph, opset_imports=opset, ir_version=9)
    return selfbyoc.build(selfbyoc.from_onnx(onnx.shape_inference.infer_shapes(proto)), cache=False)


@pytest.mark.parametrize("kind", ["GatherND", "ScatterND"])
def test_columns_of_places(kind, tmp_path):
    """Each column has its own axis; these were no indices of anything for the check."""
    inputs, more = {"i": [3, 2]}, ["u"] if kind == "ScatterND" else []
    updates = {"u": -np.ones(3, "float32")} if more else {}
    nodes = [(kind, ["w", "i", *more], {})]
    library = values(nodes=nodes, inputs=inputs, w=TABLE, **updates)
    library.export_library(tmp_path / "m.so")
    right = np.array([[49, 0], [-50, 3], [7, -4]])
    for each in (library, selfbyoc.load(tmp_path / "m.so")):
        (found,) = each(right)
        at = tuple(right.T)
        np.testing.assert_array_equal(found if not more else found[at], -1 if more else TABLE[at])
        for place, number, last in (([1, 0], 50, 49), ([2, 1], 4, 3), ([0, 1], -5, 3)):
            wrong = right.copy()
            wrong[tuple(place)] = number
            text = f"input 'i': expected indices from {-last - 1} to {last}, found {number} at "
            with pytest.raises(InputError, match=rf"^{text}\{place}$"):
                each(wrong)


OPEN = {
    "Gather": {"axis": 1},
    "GatherElements": {"axis": 1},
    "ScatterElements": {"axis": 1},
    "GatherND": {"batch_dims": 1},
}


@pytest.mark.parametrize("kind", OPEN)
def test_an_axis_whose_size_is_open(kind):
    """How many there are only a call knows."""
    inputs = {"x": [2, "n"], "i": [2, "k"], "u": [2, "k"]}
    if kind == "GatherND":
        inputs["i"] = [2, 1]
    if GENERATION == "relay" and kind == "GatherND":
        pytest.skip("0.17's frontend wants these to be constants")
    names = ["x", "i", *(["u"] if kind == "ScatterElements" else [])]
    library = values(nodes=[(kind, names, OPEN[kind])], inputs={n: inputs[n] for n in names})
    for count in (5, 2, 9):
        x = np.arange(2 * count, dtype="float32").reshape(2, count)
        given = {"x": x, "i": np.array([[count - 1], [0]]), "u": np.zeros((2, 1), "float32")}
        library(**{name: given[name] for name in names})
        given["i"] = np.array([[0], [count]])
        text = rf"input 'i': expected indices from -?\d to {count - 1}, found {count} at \[1, 0\]"
        with pytest.raises(InputError, match=text):
            library(**{name: given[name] for name in names})


@pytest.mark.skipif(GENERATION == "relay", reason="its onnx takes no op apart")
def test_a_target_that_is_left_out():
    nodes = [("NegativeLogLikelihoodLoss", ["x", "i"], {"ignore_index": -100})]
    library = values(nodes=nodes, inputs={"x": [4, 7], "i": [4]})
    x = np.arange(28, dtype="float32").reshape(4, 7)
    (found,) = library(x, np.array([0, 6, -100, 3]))
    np.testing.assert_allclose(found, -np.mean([x[0, 0], x[1, 6], x[3, 3]]), rtol=1e-6)
    for number in (7, -101):
        with pytest.raises(InputError, match=f"to 6 or -100, found {number} at "):
            library(x, np.array([0, 6, number, 3]))
