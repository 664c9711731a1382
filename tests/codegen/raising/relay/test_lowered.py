"""Relay: PrimFuncs that TVM makes of its fused functions, as ops again."""

import numpy as np
import pytest
from layouts import permuted
from raising import run_by_tvm
from tvm import relay

from selfbyoc import emit, op, op_info, raise_ops, with_plain_layouts
from selfbyoc.codegen.raising.parameter_layouts import index_map, with_parameter_layouts
from selfbyoc.runtime.tolerance import first_wrong
from selfbyoc.transform import lower
from selfbyoc.tvm import tvm

NHWC = permuted(0, 2, 3, 1)
GENERIC = {"kind": "llvm", "keys": ["generic"]}  # plain blocks, not those of x86's layouts


def fused(mod):
    """The primitive functions of a module, as TVM fuses them."""
    found = []
    relay.analysis.post_order_visit(
        relay.transform.FuseOps(2)(mod)["main"],
        lambda e: found.append(e) if isinstance(e, relay.Function) else None,
    )
    return found[:-1]


def agree(func, graph, inputs, mod):
    found = run_by_tvm(emit(with_plain_layouts(graph)), inputs)
    wanted = run_by_tvm(mod, [np.asarray(i) for i in func])
    for f, w in zip(found, wanted, strict=True):
        assert first_wrong(f, w, str(f.dtype), 100) is None


def test_a_convolution_with_its_epilogue():
    shapes = {"x": (1, 8, 9, 7), "w": (12, 8, 3, 3), "b": (12,)}
    mod = emit(
        lambda x, w, b: op.multiply(op.relu(op.bias_add(op.conv2d(x, w, padding=1), b)), 0.5),
        shapes,
    )
    (function,) = fused(mod)
    func = lower(function, GENERIC)
    graph = raise_ops(func)
    assert [c.kind for c in graph.ops] == ["conv2d", "expand_dims", "add", "relu", "multiply"] or (
        [c.kind for c in graph.ops] == ["conv2d", "bias_add", "relu", "multiply"]
    )
    rng = np.random.default_rng(0)
    args = [rng.standard_normal(s).astype("float32") for s in shapes.values()]
    agree(args, graph, args, mod)
    moved = with_parameter_layouts(func, {0: index_map(NHWC)})
    given = [np.ascontiguousarray(args[0].transpose(0, 2, 3, 1)), *args[1:]]
    graph = raise_ops(moved)
    assert graph.ops[0].attrs["data_layout"] == "NHWC"
    agree(args, graph, given, mod)


def test_arrays_that_the_function_holds():
    """Constants are part of Relay's PrimFuncs: they are constants of the module again."""
    x = relay.var("x", shape=(3, 4))
    row = np.arange(4, dtype="float32")
    table = np.arange(12, dtype="float32").reshape(3, 4) / 5
    body = relay.multiply(relay.add(x, relay.const(row)), relay.const(table))
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], body)))
    func = lower(mod["main"], GENERIC)
    add, multiply = op_info(func)
    assert {repr(add.sources[1]), repr(multiply.sources[1])} == {"data 0", "data 1"}
    graph = raise_ops(func)
    assert [v.name for v in graph.inputs] == ["x"]
    given = np.random.default_rng(1).standard_normal((3, 4)).astype("float32")
    (found,) = run_by_tvm(emit(graph), [given])
    np.testing.assert_allclose(found, (given + row) * table, rtol=1e-6)


@pytest.mark.parametrize("axis", [0, 1])
def test_several_results(axis):
    mod = emit(
        lambda x: op.relu(op.split(op.tanh(x), indices_or_sections=2, axis=axis)[1]), {"x": (4, 6)}
    )
    given = np.random.default_rng(2).standard_normal((4, 6)).astype("float32")
    for function in fused(mod):
        graph = raise_ops(lower(function, GENERIC))
        if [v.shape for v in graph.inputs] == [(4, 6)]:
            agree([given], graph, [given], mod)
            return
    pytest.fail("no function of all of the ops")
