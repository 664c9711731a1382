"""Loops and Scans of more steps than are written one by one, or of as many as data decide."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import selfbyoc
from selfbyoc.errors import InputError
from selfbyoc.runtime.tolerance import first_wrong

runtime = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.filterwarnings(
    "ignore::selfbyoc.errors.ModelWarning", "ignore::selfbyoc.errors.MatchWarning"
)
BOOL, FLOAT, INT64 = TensorProto.BOOL, TensorProto.FLOAT, TensorProto.INT64
node, value = helper.make_node, helper.make_tensor_value_info
GOES_ON = node("Identity", ["go"], ["on"])
RNG = np.random.default_rng(0)


def random(*shape):
    return RNG.standard_normal(shape, dtype="float32")


def body(nodes, states, results, tag=""):
    """Of a Loop: states and results are values."""
    ins = [value(f"number{tag}", INT64, []), value(f"go{tag}", BOOL, []), *states]
    return helper.make_graph(nodes, f"body{tag}", ins, [value(f"on{tag}", BOOL, []), *results])


def model(nodes, inputs, outputs, opset=18, **constants):
    arrays = [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, arrays)
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def built(proto):
    return selfbyoc.build(selfbyoc.from_onnx(proto), cache=False)


def is_right(library, proto, *given, terms=37):
    """By ONNX Runtime, of sums of so many terms."""
    session = runtime.InferenceSession(proto.SerializeToString())
    names = [v.name for v in session.get_inputs()]
    wanted = session.run(None, dict(zip(names, given, strict=True)))
    for ours, theirs in zip(library(*given), wanted, strict=True):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        assert first_wrong(ours, theirs.astype("float64"), str(ours.dtype), terms) is None
    return True


def dense_loop(batch=3, goes_on=GOES_ON, **more):
    """tanh(s @ w + b), times something around it; the width is a tail of every tile."""
    nodes = [
        goes_on, node("MatMul", ["s", "w"], ["p"]), node("Add", ["p", "b"], ["q"]),
        node("Tanh", ["q"], ["t"]), node("Mul", ["t", "x"], ["row"]),
    ]  # fmt: skip
    shape = [batch, 37]
    steps = body(nodes, [value("s", FLOAT, shape)], [value(n, FLOAT, shape) for n in ("t", "row")])
    ins = [value("s0", FLOAT, shape), value("x", FLOAT, shape)]
    ins += [value("count", INT64, [])] * ("count" not in more)
    ins += [value("least", FLOAT, [])] * (goes_on is not GOES_ON)
    outs = [value("y", FLOAT, shape), value("rows", FLOAT, [None, *shape])]
    loop = node("Loop", ["count", "", "s0"], ["y", "rows"], body=steps)
    weights = {"w": random(37, 37) / 9, "b": random(37), **more}
    return model([loop], ins, outs, **weights)


def test_many_steps_whose_number_is_known():
    """The build has the step once, with one of our kernels; the stack does not grow with steps."""
    proto, given = dense_loop(count=np.array(10_000)), (random(3, 37), random(3, 37))
    library = built(proto)
    assert library.report.counts == {"dense": 1}
    assert [r.root for r in library.report.matched] == ["step_0/tanh"]
    assert [shape for _, shape, _ in library.outputs] == [(3, 37), (10_000, 3, 37)]
    assert is_right(library, proto, *given)


def test_as_many_steps_as_data_say():
    proto, given = dense_loop(), (random(3, 37), random(3, 37))
    library = built(proto)
    assert library.report.counts == {"dense": 1}
    for count in (0, 1, 2, 7, 33):
        assert is_right(library, proto, *given, np.array(count))


def test_a_condition_that_data_decide():
    """It is looked at after each step, and the number of steps is a limit beside it."""
    ends = (
        node("ReduceMax", ["t"], ["most"], keepdims=0),
        node("Greater", ["most", "least"], ["on"]),
    )
    proto = dense_loop(goes_on=ends[1])
    steps = proto.graph.node[0].attribute[0].g
    ordered = [*steps.node[1:], ends[0], ends[1]]
    del steps.node[:]
    steps.node.extend(ordered)
    library, given = built(proto), (random(3, 37), random(3, 37))
    lengths = set()
    for least in (-1.0, 0.3, 0.9, 2.0):
        more = np.array(41), np.array(least, "float32")
        assert is_right(library, proto, *given, *more)
        lengths.add(len(library(*given, *more)[1]))
    assert {1, 41} <= lengths


def test_a_batch_of_no_known_size():
    """Of no step, a row is as large as it would have been; ONNX Runtime says 0 there."""
    proto = dense_loop(batch="n")
    library = built(proto)
    for rows in (1, 5):
        assert is_right(library, proto, random(rows, 37), random(rows, 37), np.array(50))
    last, rows = library(x := random(2, 37), random(2, 37), np.array(0))
    np.testing.assert_array_equal(last, x)
    assert rows.shape == (0, 2, 37)


def test_a_state_that_grows():
    nodes = [GOES_ON, node("Concat", ["s", "x"], ["t"], axis=0)]
    steps = body(nodes, [value("s", FLOAT, None)], [value("t", FLOAT, None)])
    ins = [value("s0", FLOAT, [1, 3]), value("x", FLOAT, [2, 3]), value("count", INT64, [])]
    loop = node("Loop", ["count", "", "s0"], ["y"], body=steps)
    proto = model([loop], ins, [value("y", FLOAT, [None, 3])])
    library = built(proto)
    for count in (0, 1, 11):
        assert is_right(library, proto, random(1, 3), random(2, 3), np.array(count))


def test_a_loop_in_a_loop():
    """Each with its kernel; what the inner one reads is of the outermost graph, too."""
    inner = body(
        [node("Identity", ["go2"], ["on2"]), node("MatMul", ["s2", "w"], ["p2"]),
         node("Tanh", ["p2"], ["t2"])],
        [value("s2", FLOAT, [3, 5])], [value("t2", FLOAT, [3, 5])], "2",
    )  # fmt: skip
    outer = body(
        [GOES_ON, node("MatMul", ["s", "v"], ["p"]), node("Relu", ["p"], ["r"]),
         node("Loop", ["least", "", "r"], ["t"], body=inner)],
        [value("s", FLOAT, [3, 5])], [value("t", FLOAT, [3, 5]), value("r", FLOAT, [3, 5])],
    )  # fmt: skip
    ins = [value("s0", FLOAT, [3, 5]), value("count", INT64, []), value("least", INT64, [])]
    outs = [value("y", FLOAT, [3, 5]), value("rows", FLOAT, [None, 3, 5])]
    loop = node("Loop", ["count", "", "s0"], ["y", "rows"], body=outer)
    proto = model([loop], ins, outs, w=random(5, 5) / 4, v=random(5, 5) / 4)
    library = built(proto)
    assert library.report.counts == {"dense": 2}
    for counts in ((7, 3), (1, 0), (0, 1)):
        assert is_right(library, proto, random(3, 5), *map(np.array, counts))


STEPS = 2 * 40 * 70  # of multiply-adds, one after the other


def chain():
    """Two loops that differ in their weights alone, too large to be looked at for a name."""
    nodes = []
    for n, (x, y) in enumerate((("x", "z"), ("z", "y"))):
        inside = [
            node("Identity", [f"go{n}"], [f"on{n}"]),
            node("MatMul", [f"s{n}", f"w{n}"], [f"p{n}"]), node("Tanh", [f"p{n}"], [f"t{n}"]),
        ]  # fmt: skip
        ends = [[value(f"{each}{n}", FLOAT, [3, 70])] for each in "st"]
        nodes.append(node("Loop", ["count", "", x], [y], body=body(inside, *ends, n)))
    ends = [[value(n, FLOAT, [3, 70])] for n in "xy"]
    weights = {f"w{n}": random(70, 70) / 9 for n in range(2)}
    return model(nodes, *ends, count=np.array(40), **weights)


def test_two_loops_and_the_file_of_them(tmp_path):
    proto, x = chain(), random(3, 70)
    library = built(proto)
    assert len({r.symbol for r in library.report.matched}) == 2
    assert is_right(library, proto, x, terms=STEPS)
    library.export_library(tmp_path / "loops.so")
    np.testing.assert_array_equal(selfbyoc.load(tmp_path / "loops.so")(x)[0], library(x)[0])


def test_a_kernel_of_a_step_is_refused_like_any_other():
    """A guard that leaves everything out: TVM's kernels serve."""
    from selfbyoc.partition.refusal import SLOWER, Refusal

    def nothing(decided):
        return {(r.composite, r.root): Refusal(SLOWER, "too slow") for r in decided.report.matched}

    proto = chain()
    library = selfbyoc.build(selfbyoc.from_onnx(proto), guard=nothing, cache=False)
    assert library.report.matched == []
    assert is_right(library, proto, random(3, 70), terms=STEPS)


def test_a_kernel_of_a_step_stays_where_it_is():
    mod = selfbyoc.partition_for_tefuse(selfbyoc.from_onnx(chain()))
    with pytest.raises(InputError, match="is a kernel of the step of a loop; expected those of"):
        selfbyoc.unfuse(mod)


def scan(length, back=0, axis=0, axis_out=0, back_out=0, size=None):
    nodes = [
        node("MatMul", ["s", "w"], ["p"]), node("Add", ["p", "row"], ["q"]),
        node("Tanh", ["q"], ["t"]), node("Mul", ["t", "row"], ["o"]),
    ]  # fmt: skip
    ends = ([value(n, FLOAT, [2, 37]) for n in names] for names in (("s", "row"), ("t", "o")))
    shapes = [[2, 37], [2, 37]]
    for shape, place in zip(shapes, (axis, axis_out), strict=True):
        shape.insert(place, size or length)
    step = node(
        "Scan", ["s0", "x"], ["y", "all"], body=helper.make_graph(nodes, "b", *ends),
        num_scan_inputs=1, scan_input_axes=[axis], scan_input_directions=[back],
        scan_output_axes=[axis_out], scan_output_directions=[back_out],
    )  # fmt: skip
    ins = [value("s0", FLOAT, [2, 37]), value("x", FLOAT, shapes[0])]
    outs = [value("y", FLOAT, [2, 37]), value("all", FLOAT, shapes[1])]
    return model([step], ins, outs, w=random(37, 37) / 9)


@pytest.mark.parametrize("forms", [{}, {"back": 1, "axis": 1, "axis_out": 2, "back_out": 1}])
def test_a_scan_of_many_steps(forms):
    proto = scan(77, **forms)
    x = random(2, 77, 37) if forms else random(77, 2, 37)
    library = built(proto)
    assert library.report.counts == {"dense": 1}
    assert is_right(library, proto, random(2, 37), x)


def test_a_scan_of_no_known_length():
    proto = scan(1, size="n")
    library = built(proto)
    for length in (1, 45):
        assert is_right(library, proto, random(2, 37), random(length, 2, 37))


def test_what_a_step_is_made_of_is_read_like_a_model():
    """IsInf of one sign is written otherwise first, also within a loop."""
    nodes = [
        GOES_ON, node("IsInf", ["s"], ["i"], detect_negative=0),
        node("Cast", ["i"], ["f"], to=FLOAT), node("Sub", ["s", "f"], ["t"]),
    ]  # fmt: skip
    ends = ([value(n, FLOAT, [3])] for n in "st")
    loop = node("Loop", ["count", "", "x"], ["y"], body=body(nodes, *ends))
    proto = model([loop], [value("x", FLOAT, [3])], [value("y", FLOAT, [3])], count=np.array(40))
    x = np.array([-np.inf, 1.5, -2], "float32")
    np.testing.assert_array_equal(built(proto)(x)[0], x)


def test_numbers_that_steps_have():
    """ONNX Runtime 1.32 returns its last number in every place."""
    ends = [value("s", FLOAT, [3])], [value(n, FLOAT, [3]) for n in "t"]
    nodes = [GOES_ON, node("Neg", ["s"], ["t"]), node("Identity", ["number"], ["m"])]
    steps = body(nodes, ends[0], [*ends[1], value("m", INT64, [])])
    outs = [value("y", FLOAT, [3]), value("n", INT64, [41])]
    loop = node("Loop", ["count", "", "x"], ["y", "n"], body=steps)
    proto = model([loop], [value("x", FLOAT, [3])], outs, count=np.array(41))
    x = random(3)
    last, numbers = built(proto)(x)
    np.testing.assert_array_equal(last, -x)
    np.testing.assert_array_equal(numbers, np.arange(41))


def test_a_state_that_becomes_another_thing():
    nodes = [GOES_ON, node("Unsqueeze", ["s", "first"], ["t"])]
    ends = ([value(n, FLOAT, None)] for n in "st")
    loop = node("Loop", ["count", "", "x"], ["y"], body=body(nodes, *ends))
    ins = [value("x", FLOAT, [3]), value("count", INT64, [])]
    proto = model([loop], ins, [value("y", FLOAT, None)], first=np.array([0]))
    with pytest.raises(InputError, match="expected its state 0 after a step as it is before"):
        selfbyoc.from_onnx(proto)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_range_of_data(dtype):
    """Of floats of 16 bits ONNX defines it by a Loop."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    kind = getattr(TensorProto, dtype.upper())
    if not onnx.defs.has("Range", 27) or onnx.defs.onnx_opset_version() < 27:
        pytest.skip("this onnx has no Range of them")
    step = node("Range", ["start", "limit", "delta"], ["y"])
    ins = [value(name, kind, []) for name in step.input]
    proto = model([step], ins, [value("y", kind, [None])], opset=27)
    library, numpy_type = built(proto), np.dtype(getattr(ml_dtypes, dtype, dtype))
    for start, limit, delta in ((1, 5, 2), (4, -3, -1), (2, 2, 1)):
        (found,) = library(*(np.array(x, numpy_type) for x in (start, limit, delta)))
        assert found.dtype == numpy_type
        np.testing.assert_array_equal(found.astype(int), np.arange(start, limit, delta))
