"""`unfuse(separate=True)` on Relay: primitive functions that relay.build takes (wish C33)."""

import json
import re

import numpy as np
import pytest
from tvm import relay
from tvm.contrib import graph_executor

import selfbyoc
from selfbyoc import Composite, op, partition_for_tefuse, unfuse
from selfbyoc.ir.relay.walk import postorder
from selfbyoc.schedules.composites.quantized import conv2d_narrowed
from selfbyoc.tvm import make_target, tvm

# A target on which TVM takes products of int8 apart: nn.dense becomes a product and a sum.
VNNI = "llvm -mcpu=cascadelake"


def primitive(function):
    return function.with_attr("Primitive", tvm.tir.IntImm("int32", 1))


def by_hand(x, weight):
    """What anybody writes first: one op, one function."""
    p, w = relay.var("p", shape=x[0], dtype=x[1]), relay.var("w", shape=weight[0], dtype=weight[1])
    alone = primitive(relay.Function([p, w], relay.nn.dense(p, w, out_dtype="int32")))
    v = relay.var("x", shape=x[0], dtype=x[1])
    call = relay.Call(alone, [v, relay.const(np.ones(*weight))])
    return tvm.IRModule.from_expr(relay.Function([v], call))


def int8_pair(x, gamma, beta, weight):
    """layer_norm and dense in int8, as in the thread."""
    y = op.layer_norm(op.cast(x, dtype="float32"), gamma, beta)
    y = op.cast(op.clip(op.round(op.multiply(y, 16.0)), a_min=-128, a_max=127), dtype="int8")
    return op.dense(y, weight, out_dtype="int32")


PAIR = Composite("pair", int8_pair)


def pair_partitioned():
    rng = np.random.default_rng(7)
    weights = {
        "gamma": np.ones(64, "float32"),
        "beta": np.zeros(64, "float32"),
        "weight": rng.integers(-128, 127, (48, 64)).astype("int8"),
    }
    mod = selfbyoc.emit(int8_pair, {"x": ((7, 64), "int8")}, weights)
    return partition_for_tefuse(mod, composites=[PAIR])


def ops_of(mod):
    """The ops of primitive functions, each of which has one; by names as TVM gives to functions."""
    found = []

    def visit(expr):
        if isinstance(expr, relay.Function) and "Primitive" in (expr.attrs or {}):
            (op_name,) = (e.op.name for e in postorder(expr.body) if isinstance(e, relay.Call))
            found.append(op_name.replace(".", "_"))

    relay.analysis.post_order_visit(mod["main"], visit)
    return found


def functions_of(lib):
    nodes = json.loads(lib.get_graph_json())["nodes"]
    return [node["attrs"]["func_name"] for node in nodes if node["op"] == "tvm_op"]


def test_what_relay_build_says_to_one_op_in_a_function():
    """C33: "I'm trying to construct the relay IR to separate OPs into different Functions, but
    can't pass checking when relay.build".
    """
    mod = by_hand(((7, 64), "int8"), ((48, 64), "int8"))
    with pytest.raises(tvm.TVMError, match="two complicated ops"):
        relay.build(mod, target=VNNI)


def test_the_pair_of_the_thread_passes_on_that_target():
    parted = pair_partitioned()
    back = unfuse(parted, separate=True, target=VNNI)
    with tvm.transform.PassContext(opt_level=2):  # 3 adds functions that change layouts
        names = functions_of(relay.build(back, target=VNNI))
    assert sum("dense" in name for name in names) == 1
    ops = ops_of(back)
    assert len(ops) > 15  # layer_norm alone is eight to TVM
    assert {re.sub(r"tvmgen_default_fused_|_\d+$", "", name) for name in names} <= set(ops)


def test_the_target_that_partitioning_was_told_is_the_default():
    mod = selfbyoc.emit(
        lambda x, w: op.relu(op.dense(x, w, out_dtype="int32")),
        {"x": ((7, 64), "int8")}, {"w": np.ones((48, 64), "int8")},
    )  # fmt: skip
    composite = Composite("both", lambda x, w: op.relu(op.dense(x, w)))
    parted = partition_for_tefuse(mod, target=VNNI, composites=[composite])
    assert relay.build(unfuse(parted, separate=True), target=VNNI)


@pytest.mark.parametrize("executor", ["graph", "vm", "aot"])
def test_every_executor(executor):
    """Right, and no op fused: nor those that TVM makes of layer_norm."""
    parted = pair_partitioned()
    back = unfuse(parted, separate=True)
    x = np.random.default_rng(1).integers(-128, 127, (7, 64)).astype("int8")
    if executor == "graph":
        lib = relay.build(back, target="llvm")
        module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
        module.run(x=x)
        found = module.get_output(0).numpy()
    elif executor == "vm":
        compiled = relay.vm.compile(back, target=make_target("llvm"))
        found = tvm.runtime.vm.VirtualMachine(compiled, tvm.cpu()).run(x).numpy()
    else:
        assert relay.build(back, target="llvm", executor=relay.backend.Executor("aot"))
        return  # it runs from an exported library alone
    y = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    weight = np.random.default_rng(7).integers(-128, 127, (48, 64)).astype("int8")
    levels = np.clip(np.rint(y * 16), -128, 127)
    np.testing.assert_allclose(found, levels @ weight.T.astype(float), atol=128)  # a level, rounded


def test_ops_of_qnn():
    """They are taken apart first: alone in a function, what TVM makes of them is more than one."""
    shapes = {"x": (1, 6, 9, 8), "w": (5, 6, 3, 3)}
    x, w = (relay.var(n, shape=s, dtype="int8") for n, s in shapes.items())
    zero, half = relay.const(0, "int32"), relay.const(0.5, "float32")
    y = relay.qnn.op.conv2d(
        x, w, zero, zero, half, half, kernel_size=(3, 3), channels=5, padding=(1, 1)
    )
    one = relay.const(1.0, "float32")
    y = relay.qnn.op.requantize(y, half, zero, one, zero, out_dtype="int8")
    mod = tvm.IRModule.from_expr(relay.Function([x, w], relay.clip(y, -100, 100)))
    rng = np.random.default_rng(2)
    data = {n: rng.integers(-9, 9, s).astype("int8") for n, s in shapes.items()}
    parted = partition_for_tefuse(mod, composites=[conv2d_narrowed])
    assert selfbyoc.report(parted).counts == {"conv2d_narrowed": 1}
    found = []
    for each in (mod, unfuse(parted), unfuse(parted, separate=True)):
        module = graph_executor.GraphModule(relay.build(each, target="llvm")["default"](tvm.cpu()))
        module.run(**data)
        found.append(module.get_output(0).numpy())
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    assert len(np.unique(found[0])) > 9
