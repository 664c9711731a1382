"""LSTM, GRU and RNN: one kernel of all steps, from ONNX's layers and from the vocabulary's ops."""

import numpy as np
import pytest
from harness import assert_close, run_case

import selfbyoc
from selfbyoc import BUILTIN, Case, emit, op
from selfbyoc.analysis.gpu.cases import made
from selfbyoc.errors import CompositeError, InputError, ScheduleError
from selfbyoc.ir.generation import ir
from selfbyoc.runtime.numpy_ops import evaluate
from selfbyoc.runtime.tolerance import first_wrong
from selfbyoc.tvm import GENERATION, make_target

onnx = pytest.importorskip("onnx", reason="the onnx extra is not installed")
runtime = pytest.importorskip("onnxruntime", reason="the onnx extra is not installed")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
UNITS = 19  # a block of 16 and a tail
TYPES = {"int32": TensorProto.INT32, "float32": TensorProto.FLOAT}


def layer(
    op, length=5, batch=3, direction="forward", left=(), given=(), lengths=None, outs=3, **attrs
):
    """An ONNX model of one layer and its inputs. `left`: of W R B, what the caller gives; `given`:
    of hidden, cell and P, what there is.
    """
    rng, width = np.random.default_rng(0), 6
    sides, rows = 1 + (direction == "bidirectional"), GATES[op] * UNITS

    def random(*shape):
        return (rng.standard_normal(shape) * 0.4).astype("float32")

    arrays = {
        "X": random(length, batch, width), "W": random(sides, rows, width),
        "R": random(sides, rows, UNITS), "B": random(sides, 2 * rows),
        "lengths": None if lengths is None else np.array(lengths, "int32"),
        "hidden": random(sides, batch, UNITS), "cell": random(sides, batch, UNITS),
        "P": random(sides, 3 * UNITS),
    }  # fmt: skip
    given = [name for name in given if op == "LSTM" or name == "hidden"]
    there = {"X", "W", "R", "B", "lengths", *given} - {k for k, a in arrays.items() if a is None}
    names = [name if name in there else "" for name in arrays]
    while not names[-1]:
        names.pop()
    results = ["Y", "Y_h", "Y_c"][: min(outs, 3 if op == "LSTM" else 2)]
    node = helper.make_node(
        op, names, results, name="the_layer", hidden_size=UNITS, direction=direction, **attrs
    )
    feeds = {n: arrays[n] for n in names if n and n not in {"W", "R", "B", "P"} - set(left)}
    weights = [numpy_helper.from_array(arrays[n], n) for n in names if n and n not in feeds]
    graph = helper.make_graph(
        [node], "g",
        [helper.make_tensor_value_info(n, TYPES[str(a.dtype)], a.shape) for n, a in feeds.items()],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in results], weights,
    )  # fmt: skip
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    return onnx.shape_inference.infer_shapes(made), feeds


def check(op, counts=1, **options):
    """Ours against ONNX Runtime's; so many of the composite, but no other of the layers'."""
    made, feeds = layer(op, **options)
    session = runtime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    wanted = session.run(None, feeds)
    library = selfbyoc.build(selfbyoc.from_onnx(made), cache=False)
    kind = "peephole_lstm" if "P" in options.get("given", ()) else op.lower()
    assert library.report.counts.get(kind, 0) == counts
    for found, expected in zip(library(**feeds), wanted, strict=True):
        assert first_wrong(found, expected, "float32", 5 * UNITS) is None


@pytest.mark.parametrize(
    ("op", "options"),
    [
        ("LSTM", {"given": ["hidden", "cell"]}),
        ("LSTM", {"direction": "reverse", "outs": 1}),
        ("LSTM", {"direction": "bidirectional", "given": ["hidden", "cell", "P"], "clip": 0.3}),
        ("LSTM", {"input_forget": 1, "length": 1, "batch": 1}),
        ("GRU", {"direction": "bidirectional", "linear_before_reset": 1, "given": ["hidden"]}),
        ("GRU", {"direction": "reverse", "batch": 1}),
        ("RNN", {"direction": "bidirectional", "activations": ["Relu", "Affine"],
                 "activation_alpha": [0.7], "activation_beta": [0.1]}),
    ],
    ids=str,
)  # fmt: skip
def test_layers_of_onnx(op, options):
    check(op, **options)


@pytest.mark.parametrize("op", GATES)
def test_sequences_of_several_lengths(op):
    """Each direction is a layer of its own: the reverse one begins at the end of each sequence."""
    check(op, counts=2, direction="bidirectional", lengths=[5, 1, 3], given=["hidden", "cell"])


@pytest.mark.parametrize("op", GATES)
def test_weights_that_the_caller_gives(op):
    """They are packed at each call."""
    check(op, left=["R"], direction="bidirectional")


@pytest.mark.parametrize(
    "name", ["LeakyRelu", "Elu", "HardSigmoid", "Softsign", "Softplus", "ThresholdedRelu"]
)
def test_activations(name):
    check("RNN", activations=[name], activation_alpha=[0.6], activation_beta=[0.3])


@pytest.mark.filterwarnings("ignore:the model.*ONNX Runtime does not open it")
def test_batch_first():
    """ONNX Runtime has no layout of 1: the same as axes in another order."""
    made, feeds = layer("LSTM", direction="bidirectional", given=["hidden", "cell"])
    other, _ = layer("LSTM", direction="bidirectional", given=["hidden", "cell"], layout=1)
    for value in other.graph.input:
        dims = value.type.tensor_type.shape.dim
        dims[0].dim_value, dims[1].dim_value = dims[1].dim_value, dims[0].dim_value
    for value in other.graph.output:
        sizes = [3, 5, 2, UNITS] if value.name == "Y" else [3, 2, UNITS]
        for dim, size in zip(value.type.tensor_type.shape.dim, sizes, strict=True):
            dim.dim_value = size
    whole, *last = selfbyoc.build(selfbyoc.from_onnx(made), cache=False)(**feeds)
    turned = {name: np.ascontiguousarray(a.swapaxes(0, 1)) for name, a in feeds.items()}
    found = selfbyoc.build(selfbyoc.from_onnx(other), cache=False)(**turned)
    np.testing.assert_array_equal(found[0], whole.transpose(2, 0, 1, 3))
    for ours, expected in zip(found[1:], last, strict=True):
        np.testing.assert_array_equal(ours, expected.swapaxes(0, 1))


@pytest.mark.parametrize(
    ("attrs", "said"),
    [
        ({"activations": ["Gelu", "Tanh", "Tanh"]}, "no activation is called 'Gelu'"),
        ({"activations": ["Tanh"]}, r"expected 3 activations, found \['Tanh'\]"),
        ({"direction": "sideways"}, "direction is 'sideways'"),
    ],
)
def test_what_is_no_layer(attrs, said):
    made, _ = layer("LSTM")
    node = made.graph.node[0]
    kept = [a for a in node.attribute if a.name not in attrs]
    del node.attribute[:]
    node.attribute.extend([*kept, *(helper.make_attribute(k, v) for k, v in attrs.items())])
    with pytest.raises(InputError, match=f"LSTM 'the_layer': {said}"):
        selfbyoc.from_onnx(made)


GOOD = {"gates": (3, 2, 24), "weight": (1, 24, 6), "hidden": (1, 2, 6), "cell": (1, 2, 6)}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"weight": (2, 24, 6)}, "weight: expected 1 directions, found 2"),
        ({"gates": (3, 2, 23)}, "expected 4 \\* 6 rows and 1 times as many gates"),
        (
            {"hidden": (1, 3, 6)},
            r"hidden: expected \[1, 2, 6\], or a batch of 1, found",
        ),
        ({"cell": (1, 2, 5)}, r"cell: expected \[1, 2, 6\]"),
    ],
)
def test_sizes_that_do_not_fit(wrong, said):
    def program(gates, weight, hidden, cell):
        return op.lstm(gates, weight, hidden, cell)[0]

    with pytest.raises(CompositeError, match=said):
        emit(program, {**GOOD, **wrong})


def quantized(length, batch, direction="forward", per_channel=False, kind="int8", **options):
    """ONNX Runtime's layer of weights of 8 bits, made of one of floats, and its inputs. Signed ones
    have 7: the runtime adds up two products in 16 bits where the CPU has no VNNI, and saturates.
    """
    largest = 120 if kind == "uint8" else 60
    made, feeds = layer("LSTM", length, batch, direction, **options)
    (node,) = made.graph.node
    arrays = {i.name: numpy_helper.to_array(i) for i in made.graph.initializer}
    node.op_type, node.domain = "DynamicQuantizeLSTM", "com.microsoft"
    node.input.extend([""] * (8 - len(node.input)))
    for name in "WR":
        weight = arrays[name].transpose(0, 2, 1)
        most = np.abs(weight).max(axis=1 if per_channel else (1, 2)) / largest
        middle = 130 if kind == "uint8" else 0 if per_channel else 3  # the runtime wants it so
        point = np.full(most.shape, middle, kind)
        scale = most.reshape(len(weight), 1, -1)
        whole = np.rint(weight / scale) + point.reshape(len(weight), 1, -1)
        for suffix, array in (("q", whole.astype(kind)), ("s", most), ("z", point)):
            made.graph.initializer.append(numpy_helper.from_array(array, name + suffix))
    node.input[1], node.input[2] = "Wq", "Rq"
    node.input.extend(["Ws", "Wz", "Rs", "Rz"])
    kept = [i for i in made.graph.initializer if i.name not in "WR"]
    del made.graph.initializer[:]
    made.graph.initializer.extend(kept)
    made.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return made, feeds


def by_onnx_runtime(model, feeds):
    """With one thread: several share the rows of a batch, and each rounds its own."""
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    session = runtime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, feeds)


@pytest.mark.parametrize(
    ("composite", "options"),
    [
        ("lstm", {"length": 7, "batch": 1, "direction": "bidirectional", "per_channel": True}),
        ("peephole_lstm", {"length": 3, "batch": 2, "given": ("hidden", "cell", "P")}),
        ("lstm_int8", {"length": 3, "batch": 2, "given": ("hidden", "cell"), "kind": "uint8"}),
        ("lstm_int8", {"length": 5, "batch": 3, "direction": "bidirectional"}),
        ("lstm_int8", {"length": 1, "batch": 1, "direction": "reverse"}),
    ],
    ids=lambda options: f"{options['length']} steps" if isinstance(options, dict) else options,
)
def test_weights_of_8_bits(composite, options):
    """The state is rounded anew at each step: without that the results differ by a hundredth."""
    model, feeds = quantized(**options)
    library = selfbyoc.build(selfbyoc.from_onnx(model), cache=False)
    assert library.report.counts == {composite: 1, "dense_int8": 1}
    wanted = by_onnx_runtime(model, feeds)
    for found, expected in zip(library(**feeds), wanted, strict=True):
        assert first_wrong(found, expected, "float32", options["length"] * UNITS) is None


def as_written(program, given, target, composite, terms):
    """A layer alone is this composite, and as the plain nest of the same layer has it."""
    mod = emit(program, {name: (array.shape, str(array.dtype)) for name, array in given.items()})
    library = selfbyoc.build(mod, target, cache=False)
    assert library.report.counts == {composite: 1}
    graph = ir.read(mod["main"])
    (wanted,) = evaluate(graph, [given[v.name] for v in graph.inputs])
    (found,) = library(**given)
    assert first_wrong(found, np.asarray(wanted), "float32", terms) is None


@pytest.mark.parametrize("target", [None, "llvm", "llvm -mcpu=haswell"])
@pytest.mark.parametrize("sizes", [(1, 1, 16), (9, 3, 21), (3, 10, 40)], ids=str)
def test_a_state_of_8_bits(sizes, target):
    """Ranges are of all rows, of whole and half vectors. A state that lies between two steps by a
    hair may round to either: one of these does so nowhere.
    """
    length, rows, units = sizes
    shapes = {
        "gates": (length, rows, 8 * units), "weight": (2, 4 * units, units),
        "hidden": (2, rows, units), "cell": (2, 1, units),
    }  # fmt: skip

    def program(gates, weight, hidden, cell):
        activations = "sigmoid tanh tanh hard_sigmoid:0.2:0.5 tanh tanh"
        options = {"direction": "bidirectional", "quantized_state": True}
        return op.lstm(gates, weight, hidden, cell, activations=activations, **options)[0]

    rng = np.random.default_rng(length)
    given = {n: rng.standard_normal(shape).astype("float32") for n, shape in shapes.items()}
    given["weight"] *= units**-0.5
    as_written(program, given, target, "lstm", length * units)


@pytest.mark.parametrize("target", [None, "llvm", "llvm -mcpu=haswell"])
@pytest.mark.parametrize("sizes", [(1, 1, 16), (4, 2, 21)], ids=str)
def test_a_weight_of_levels_that_is_data(sizes, target):
    """It is packed in the kernel, and summed up there."""
    length, rows, units = sizes
    shapes = {
        "gates": (length, rows, 4 * units), "weight": (1, 4 * units, units),
        "hidden": (1, rows, units), "cell": (1, rows, units),
    }  # fmt: skip

    def program(gates, weight, hidden, cell):
        levels = op.dequantize(weight, 2.0**-9, 0)
        return op.lstm(gates, levels, hidden, cell, quantized_state=True)[0]

    rng = np.random.default_rng(units)
    given = {n: rng.standard_normal(shape).astype("float32") for n, shape in shapes.items()}
    given["weight"] = rng.integers(-127, 128, shapes["weight"]).astype("int8")
    as_written(program, given, target, "lstm_int8", length * units)


def test_weights_of_8_bits_that_are_computed():
    model, _ = quantized(2, 1)
    (weight,) = [i for i in model.graph.initializer if i.name == "Rq"]
    model.graph.initializer.remove(weight)
    given = helper.make_tensor_value_info("Rq", TensorProto.INT8, weight.dims)
    model.graph.input.append(given)
    with pytest.raises(InputError, match="DynamicQuantizeLSTM 'the_layer': 'Rq', its scale"):
        selfbyoc.from_onnx(model)


@pytest.mark.skipif(GENERATION == "relay", reason="Relay's graph executor has fixed sizes")
@pytest.mark.parametrize(
    ("op", "opened"), [("LSTM", ["steps"]), ("GRU", ["steps"]), ("RNN", ["steps", "rows"])]
)
def test_open_sizes(op, opened):
    made, _ = layer(op, direction="bidirectional")
    dims = made.graph.input[0].type.tensor_type.shape.dim
    for dim, name in zip(dims, opened, strict=False):
        dim.dim_param = name
    del made.graph.value_info[:]
    library = selfbyoc.build(selfbyoc.from_onnx(made), cache=False)
    assert library.report.counts[op.lower()] == 1
    session = runtime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    for steps, rows in ((1, 1), (4, 9), (11, 2)):
        rows = rows if "rows" in opened else 3
        x = np.random.default_rng(steps).standard_normal((steps, rows, 6)).astype("float32")
        for found, expected in zip(library(x), session.run(None, {"X": x}), strict=True):
            assert first_wrong(found, expected, "float32", steps * UNITS) is None


def test_no_kernel_of_a_gpu():
    """Its steps follow on one another: the default schedule of GPUs says so."""
    composite = next(c for c in BUILTIN if c.name == "rnn")
    with pytest.raises(ScheduleError, match="is one nest of loops, which runs on CPUs alone"):
        list(made(composite, composite.cases[0], make_target({"kind": "cuda", "arch": "sm_80"})))


# Of one step; of several in one direction; back and forth, in tiles with a tail.
ALONE = {
    "step": (1, 1, 32, "forward"),
    "steps": (5, 2, 32, "reverse"),
    "both": (3, 2, 17, "bidirectional"),
}


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("sizes", ALONE)
def test_one_result_alone(sizes, number):
    """Each step needs the hidden state of the last one, also where nobody reads it after all."""
    length, batch, units, direction = ALONE[sizes]
    sides = 1 + (direction == "bidirectional")

    def program(gates, weight, hidden, cell):
        twice = {"activations": "sigmoid tanh tanh " * sides, "direction": direction}
        return op.lstm(gates, weight, hidden, cell, **twice)[number]

    case = Case(
        program, name="alone", gates=(length, batch, sides * 4 * units), constants=["weight"],
        weight=(sides, 4 * units, units), hidden=(sides, batch, units), cell=(sides, batch, units),
    )  # fmt: skip
    run = run_case({c.name: c for c in BUILTIN}["lstm"], case)
    assert run.counts == {"lstm": 1}
    assert_close(run)


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint8"])
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_what_fills_the_last_block_of_units_is_in_no_range(direction, dtype):
    """States beyond the last unit were no copies of its: where one of them was the largest, all
    levels were others (21 units, half of the draws with bytes; `lstm` had it, too). In none of
    these draws does a state lie between two levels by a hair.
    """
    sides, units = 1 + (direction == "bidirectional"), 21
    rng = np.random.default_rng(sides)
    levels = rng.integers(-128, 128, (sides, 4 * units, units))
    zero, weight = 128 * (dtype == "uint8"), levels * np.float32(2.0**-9)
    words = " ".join(["sigmoid tanh tanh"] * sides)
    how = {"direction": direction, "activations": words, "quantized_state": True}

    def program(gates, weight, hidden, cell):
        if dtype != "float32":
            weight = op.dequantize(weight, 2.0**-9, zero)
        return op.lstm(gates, weight, hidden, cell, **how)[0]

    states = (sides, 1, units)
    shapes = {"gates": (3, 1, sides * 4 * units), "hidden": states, "cell": states}
    held = weight if dtype == "float32" else (levels + zero).astype(dtype)
    library = selfbyoc.build(emit(program, shapes, {"weight": held.astype(dtype)}), cache=False)
    assert library.report.counts == {"lstm" if dtype == "float32" else "lstm_int8": 1}
    plain = ir.read(emit(program_of_floats(how), {**shapes, "weight": weight.shape})["main"])
    for _ in range(30):
        given = {n: (0.05 * rng.standard_normal(s)).astype("float32") for n, s in shapes.items()}
        arrays = {**given, "weight": weight.astype("float32")}
        (wanted,) = evaluate(plain, [arrays[v.name] for v in plain.inputs])
        (found,) = library(**given)
        np.testing.assert_allclose(found, np.asarray(wanted), rtol=0, atol=2e-7)


def program_of_floats(how):
    return lambda gates, weight, hidden, cell: op.lstm(gates, weight, hidden, cell, **how)[0]
