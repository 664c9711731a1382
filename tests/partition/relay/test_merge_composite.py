"""MergeComposite without PartitionGraph: the Relay VM lowers the ops in the functions (WISHES A1).

"MergeComposite regions are ignored by the Relay->TVM lowering process. Is this generally true?"
"""

import numpy as np
import pytest
import tvm
from tvm import relay
from tvm.relay.dataflow_pattern import is_op, wildcard

import selfbyoc
from selfbyoc import Composite, op
from selfbyoc.ir.emit import emit
from selfbyoc.ir.generation import ir
from selfbyoc.language.known import remember
from selfbyoc.runtime.numpy_ops import evaluate


def dense_relu(x, w):
    return op.relu(op.dense(x, w))


def two_convolutions(x, a, b):
    return op.relu(op.conv2d(op.relu(op.conv2d(x, a, padding=1)), b, padding=1))


def halves(x, w):
    y = op.split(op.relu(op.dense(x, w)), indices_or_sections=2, axis=1)
    return op.multiply(y[0], op.tanh(y[1]))


def conv_relu(x):
    return is_op("nn.relu")(is_op("nn.conv2d")(x, wildcard()))


DENSE = is_op("nn.relu")(is_op("nn.dense")(wildcard(), wildcard()))
CASES = {
    "dense_relu": (dense_relu, {"x": (4, 8), "w": (16, 8)}, DENSE),
    "two heavy ops": (
        two_convolutions,
        {"x": (1, 3, 5, 7), "a": (4, 3, 3, 3), "b": (3, 4, 3, 3)},
        conv_relu(conv_relu(wildcard())),
    ),
    "beside other ops": (halves, {"x": (3, 17), "w": (10, 17)}, DENSE),
}


def data_of(shapes):
    rng = np.random.default_rng(3)
    return {n: rng.standard_normal(s).astype("float32") for n, s in shapes.items()}


def run_on_vm(mod, inputs):
    """The result, and the names of the kernels that the VM calls."""
    executable = relay.vm.compile(mod, target=selfbyoc.host_target())
    found = tvm.runtime.vm.VirtualMachine(executable, tvm.cpu()).run(**inputs)
    return found.numpy(), list(executable.primitive_ops)


def marked(main):
    """The names of the composite functions in a Relay function."""
    names = []

    def visit(expr):
        if isinstance(expr, relay.Function) and expr.attrs and "Composite" in expr.attrs.keys():  # noqa: SIM118
            names.append(str(expr.attrs["Composite"]))

    relay.analysis.post_order_visit(main, visit)
    return names


@pytest.mark.parametrize("constant", [False, True], ids=["inputs", "constants"])
@pytest.mark.parametrize("name", CASES)
def test_the_vm_lowers_both(name, constant):
    """The same module merged only, and partitioned: both right; TVM's kernels in one, ours in the
    other. (At opt_level 0 the VM takes no model: docs/makers/tvm-notes.md.)
    """
    program, shapes, pattern = CASES[name]
    data = data_of(shapes)
    weights = {n: a for n, a in data.items() if constant and n != "x"}
    inputs = {n: a for n, a in data.items() if n not in weights}
    mod = relay.transform.InferType()(emit(program, shapes, weights))
    merged = relay.transform.MergeComposite([("mine.group", pattern)])(mod)
    assert marked(merged["main"]) == ["mine.group"]
    (expected,) = evaluate(ir.read(emit(program, shapes)["main"]), list(data.values()))

    found, kernels = run_on_vm(merged, inputs)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    assert not any("tefuse" in kernel for kernel in kernels)

    group = two_convolutions if name == "two heavy ops" else dense_relu
    parted = selfbyoc.partition_for_tefuse(mod, composites=[Composite("group", group)])
    (match,) = selfbyoc.report(parted).matched
    found, kernels = run_on_vm(parted, inputs)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    assert match.symbol in kernels
    others = {"two heavy ops": 0, "dense_relu": 0, "beside other ops": 1}[name]
    assert len([k for k in kernels if k != match.symbol]) >= others


@pytest.mark.parametrize("level", [1, 2, 3])
def test_every_opt_level(level):
    program, shapes, pattern = CASES["dense_relu"]
    data = data_of(shapes)
    mod = relay.transform.InferType()(emit(program, shapes))
    merged = relay.transform.MergeComposite([("mine.group", pattern)])(mod)
    (expected,) = evaluate(ir.read(mod["main"]), list(data.values()))
    with tvm.transform.PassContext(opt_level=level):
        found, _ = run_on_vm(merged, data)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_the_tag_sends_it_to_the_hook():
    """The composite function as it was, now under a compiler's name: the hook gets it."""
    program, shapes, pattern = CASES["dense_relu"]
    data = data_of(shapes)
    asked = []

    def schedule(sch, ops, target):
        asked.append([info.kind for info in ops])

    remember(Composite("tagged", program, schedule))
    mod = relay.transform.InferType()(emit(program, shapes))
    merged = relay.transform.MergeComposite([("tefuse.tagged", pattern)])(mod)
    run_on_vm(merged, data)
    assert asked == []  # merged only: nobody asks us, whatever its name
    tagged = relay.transform.AnnotateTarget("tefuse")(merged)
    tagged = relay.transform.PartitionGraph(bind_constants=False)(tagged)
    found, kernels = run_on_vm(tagged, data)
    assert asked == [["dense", "relu"]]
    assert any("tefuse" in kernel for kernel in kernels)
    np.testing.assert_allclose(found, np.maximum(data["x"] @ data["w"].T, 0), atol=1e-5)


def test_the_graph_executor_does_not():
    """0.17: merged only, `relay.build` fails; partitioned, it does not."""
    program, shapes, pattern = CASES["dense_relu"]
    data, mod = data_of(shapes), relay.transform.InferType()(emit(program, shapes))
    merged = relay.transform.MergeComposite([("mine.group", pattern)])(mod)
    with pytest.raises(tvm.TVMError, match="primitive functions not set on Relay function"):
        relay.build(merged, target="llvm")
    (found,) = selfbyoc.build(mod, composites=[Composite("group", program)])(**data)
    np.testing.assert_allclose(found, np.maximum(data["x"] @ data["w"].T, 0), atol=1e-5)
