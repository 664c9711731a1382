"""Relax, by its own conventions: partition_for_tefuse, RunCodegen, tvm.compile, the virtual
machine.
"""

import subprocess
import sys

import numpy as np
import pytest
from harness import assert_close, run_case
from models import ROAD_SHAPES, road_data, road_reference
from packing import ROAD, ROAD_COUNTS, conv_relu, fc
from tvm import relax
from tvm.script import relax as R
from tvm.support import cc

import selfbyoc
from selfbyoc import Composite, host_target, op, partition_for_tefuse
from selfbyoc.errors import TargetError
from selfbyoc.ir.emit import emit
from selfbyoc.ir.generation import ir
from selfbyoc.partition.relax import external_functions
from selfbyoc.runtime.numpy_ops import evaluate
from selfbyoc.tir.lowering import finished
from selfbyoc.tvm import make_target, tensor, tvm


@pytest.fixture(name="data")
def fixture_data():
    return road_data()


@pytest.fixture(name="mod")
def fixture_mod():
    """conv-bias-relu twice, flatten, dense-relu, and a dense whose value is used twice; by
    BlockBuilder.
    """
    variables = {
        n: relax.Var(n, R.Tensor(s, "float32"))
        for n, s in {"x": (2, 3, 9, 11), **ROAD_SHAPES}.items()
    }
    builder = relax.BlockBuilder()
    v = variables
    with builder.function("main", list(variables.values())):
        with builder.dataflow():
            y = v["x"]
            for i, channels in enumerate((5, 7)):
                y = builder.emit(relax.op.nn.conv2d(y, v[f"w{i}"], padding=1))
                bias = builder.emit(relax.op.reshape(v[f"b{i}"], (1, channels, 1, 1)))
                y = builder.emit(relax.op.nn.relu(builder.emit(relax.op.add(y, bias))))
            y = builder.emit(relax.op.reshape(y, (2, 693)))
            y = builder.emit(relax.op.matmul(y, builder.emit(relax.op.permute_dims(v["w2"]))))
            y = builder.emit(relax.op.nn.relu(y))
            d = builder.emit(relax.op.matmul(y, builder.emit(relax.op.permute_dims(v["w3"]))))
            total = relax.op.add(builder.emit(relax.op.nn.relu(d)), builder.emit(relax.op.tanh(d)))
            out = builder.emit_output(total)
        builder.emit_func_output(out)
    return builder.get()


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5)


def compile_and_run(parted, *arrays, target=None):
    target = target or host_target()
    executable = tvm.compile(relax.transform.RunCodegen()(parted), target)
    return relax.VirtualMachine(executable, tvm.cpu())["main"](*map(tensor, arrays)).numpy()


def test_its_own_conventions(mod, data):
    x, params = data
    parted = partition_for_tefuse(mod, params, composites=ROAD)
    assert selfbyoc.report(parted).counts == ROAD_COUNTS
    assert len(external_functions(parted)) == 4
    close(compile_and_run(parted, x), road_reference(x, params))


def test_composite_attributes_are_tvms_own(mod, data):
    """Composite and PartitionedFromPattern name what was merged, as on Relay (wish A18, A22)."""
    parted = partition_for_tefuse(mod, data[1], composites=ROAD)
    said = set()
    for func in external_functions(parted).values():
        assert func.attrs["Codegen"] == "tefuse"
        bound = (b.value for block in func.body.blocks for b in block.bindings)
        (composite,) = [value for value in bound if isinstance(value, relax.Function)]
        said.add((composite.attrs["Composite"], composite.attrs["PartitionedFromPattern"]))
    assert said == {
        ("tefuse.conv_relu", "nn.conv2d_reshape_add_nn.relu_"),
        ("tefuse.fc", "permute_dims_matmul_nn.relu_"),
        ("tefuse.two_outputs", "permute_dims_matmul_nn.relu_"),
    }


def test_an_item_of_a_tuple_is_a_root():
    """FuseOpsByPattern takes only calls as roots; conv2d + batch_norm was reported, not fused."""

    def program(x, w, gamma, beta, mean, var):
        return op.batch_norm(op.conv2d(x, w, padding=1), gamma, beta, mean, var)[0]

    vector = (5,)
    shapes = {"x": (1, 3, 9, 11), "w": (5, 3, 3, 3)}
    shapes |= dict.fromkeys(("gamma", "beta", "mean", "var"), vector)
    case = selfbyoc.Case(program, **shapes)
    (composite,) = (c for c in selfbyoc.BUILTIN if c.name == "conv2d_batch_norm_relu")
    run = run_case(composite, case)
    assert_close(run)
    parted = selfbyoc.partition_for_tefuse(run.mod, composites=[composite])
    (record,) = selfbyoc.report(parted).matched
    assert record.symbol in {
        str(f.attrs["global_symbol"]) for f in external_functions(parted).values()
    }
    calls = [b.value for block in parted["main"].body.blocks for b in block.bindings]
    assert [type(c.op).__name__ for c in calls if isinstance(c, relax.Call)] == ["GlobalVar"]


def test_a_main_without_a_dataflow_block():
    """FuseOpsByPattern looks inside such blocks alone, and would mark nothing."""
    x = relax.Var("x", relax.TensorType((3, 5), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.op.nn.relu(builder.emit(relax.op.exp(x)))))
    composite = Composite("exp_relu", lambda x: op.relu(op.exp(x)))
    mod = partition_for_tefuse(builder.get(), composites=[composite])
    assert len(external_functions(mod)) == 1


def test_weights_that_are_not_constant(mod, data):
    x, params = data
    parted = partition_for_tefuse(mod, composites=ROAD)
    close(compile_and_run(parted, x, *params.values()), road_reference(x, params))


def test_build(mod, data):
    x, params = data
    library = selfbyoc.build(mod, params=params, composites=ROAD)
    assert library.unscheduled == {}
    close(library(x)[0], road_reference(x, params))
    close(library(x=x)[0], road_reference(x, params))


def test_identical_composites_are_one_function(data):
    """Two calls with their own weights share one kernel; each passes its own packed weight."""
    x, w, v = (
        relax.Var(n, R.Tensor(s, "float32"))
        for n, s in (("x", (4, 8)), ("w", (8, 8)), ("v", (8, 8)))
    )
    builder = relax.BlockBuilder()
    with builder.function("main", [x, w, v]):
        with builder.dataflow():
            y = x
            for weight in (w, v):
                y = builder.emit(relax.op.matmul(y, builder.emit(relax.op.permute_dims(weight))))
                y = builder.emit(relax.op.nn.relu(y))
            out = builder.emit_output(y)
        builder.emit_func_output(out)
    rng = np.random.default_rng(0)
    a, b, c = (rng.standard_normal(s).astype("float32") for s in ((4, 8), (8, 8), (8, 8)))
    parted = partition_for_tefuse(builder.get(), {"w": b, "v": c}, composites=[fc])
    assert selfbyoc.report(parted).counts == {"fc": 2}
    assert len(external_functions(parted)) == 1
    close(compile_and_run(parted, a), np.maximum(np.maximum(a @ b.T, 0) @ c.T, 0))


def test_constants_of_one_element_may_differ_between_calls():
    """A shared function must not take one call's constant for another's."""
    scaled = Composite("scaled", lambda x, s: op.relu(op.multiply(x, s)))
    x = relax.Var("x", R.Tensor((4, 8), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            y = x
            for factor in (2.0, 3.0):
                y = builder.emit(relax.op.multiply(y, relax.const(factor, "float32")))
                y = builder.emit(relax.op.nn.relu(y))
            out = builder.emit_output(y)
        builder.emit_func_output(out)
    a = np.random.default_rng(0).standard_normal((4, 8)).astype("float32")
    parted = partition_for_tefuse(builder.get(), composites=[scaled])
    assert selfbyoc.report(parted).counts == {"scaled": 2}
    close(compile_and_run(parted, a), np.maximum(a, 0) * 6)


RELOAD = """
import sys, numpy as np, tvm
from tvm import relax
machine = relax.VirtualMachine(tvm.runtime.load_module(sys.argv[1]), tvm.cpu())
np.save(sys.argv[3], machine["main"](tvm.runtime.tensor(np.load(sys.argv[2]))).numpy())
assert "selfbyoc" not in sys.modules
"""


def test_exported_library_runs_without_this_package(mod, data, tmp_path):
    x, params = data
    selfbyoc.build(mod, params=params, composites=ROAD).export_library(tmp_path / "model.so")
    np.save(tmp_path / "x.npy", x)
    args = [str(tmp_path / n) for n in ("model.so", "x.npy", "y.npy")]
    subprocess.run([sys.executable, "-c", RELOAD, *args], check=True, timeout=120)
    close(np.load(tmp_path / "y.npy"), road_reference(x, params))


def test_the_users_module_is_untouched(mod, data):
    before = mod.script()
    partition_for_tefuse(mod, data[1], composites=ROAD)
    assert mod.script() == before


def test_merged_composite_functions(mod, data, monkeypatch):
    """TVM's own pass may put several composites into one external function: the hook stacks them
    all.
    """
    from selfbyoc.ir.relax import read
    from selfbyoc.language.known import remember
    from selfbyoc.partition import relax as ir
    from selfbyoc.partition.relax.table import fusion_table
    from selfbyoc.partition.select import select

    x, params = data
    prepared = ir.prepare(mod, params)
    matches, _ = select(read(prepared["main"]), [conv_relu, fc])
    table = fusion_table(prepared, matches)
    merged = tvm.transform.Sequential(
        [
            relax.transform.FuseOpsByPattern(table.rows, bind_constants=False),
            relax.transform.MergeCompositeFunctions(),
        ]
    )(table.mod)
    for composite in (conv_relu, fc):
        remember(composite)
    assert len(external_functions(merged)) < len(matches)
    named = []

    def noted(func, target):
        named.append(str(func.attrs["Composite"]))
        return finished(func, target)

    monkeypatch.setattr("selfbyoc.codegen.lower.finished", noted)
    close(compile_and_run(merged, x), road_reference(x, params))
    assert set(named) == {"tefuse.conv_relu", "tefuse.fc"}


UNALIGNED = """
import sys
import numpy as np
from tvm import relax
import tvm
import selfbyoc
from selfbyoc import op
from selfbyoc.ir.emit import emit
mine = selfbyoc.Composite("mine", lambda x: op.relu(op.add(x, x)))
mod = emit(lambda x: op.tanh(op.relu(op.add(x, x))), {"x": ((64, 64), "float32")})
built = selfbyoc.build(mod, composites=[mine])
machine = relax.VirtualMachine(built.native, tvm.cpu())
space = np.zeros(64 * 64 * 4 + 128, "uint8")
for offset in (0, 4, 16, 32):
    start = -space.ctypes.data % 64 + offset
    x = np.frombuffer(space.data, "float32", 64 * 64, start).reshape(64, 64)
    x[:] = np.linspace(-1, 1, 64 * 64).reshape(64, 64)
    assert x.ctypes.data % 64 == offset
    found = machine["main"](x).numpy()
    np.testing.assert_allclose(found, np.tanh(np.maximum(2 * x, 0)), atol=1e-6)
    np.testing.assert_allclose(built(x)[0], found)
"""


def test_inputs_of_any_alignment():
    """NumPy arrays straight into the VM: TVM 0.27 alone ends the process with SIGSEGV."""
    subprocess.run([sys.executable, "-c", UNALIGNED], check=True, timeout=120)


def test_a_target_in_force_reaches_the_kernel(mod, data):
    _, params = data
    target = make_target("llvm -mcpu=x86-64-v3")
    parted = partition_for_tefuse(mod, params, composites=ROAD)
    with target:
        coded = relax.transform.RunCodegen()(parted)
    texts = [m.inspect_source("ll") for m in coded.attrs["external_mods"]]
    assert len(texts) == 4
    assert all('"target-cpu"="x86-64-v3"' in text for text in texts)


def test_onnx_sum_is_an_add():
    """Relax's importer writes Sum as broadcast_to, stack and sum: a residual must still match."""
    onnx = pytest.importorskip("onnx", reason="the onnx extra is not installed")
    from tvm.relax.frontend.onnx import from_onnx

    make, info = onnx.helper.make_node, onnx.helper.make_tensor_value_info
    nodes = [make("Relu", ["x"], ["r"]), make("Sum", ["r", "x"], ["y"])]
    value = [info(n, onnx.TensorProto.FLOAT, [2, 5]) for n in "xy"]
    model = onnx.helper.make_model(
        onnx.helper.make_graph(nodes, "residual", value[:1], value[1:]),
        opset_imports=[onnx.helper.make_opsetid("", 17)],
        ir_version=8,
    )
    residual = Composite("residual", lambda x: op.add(op.relu(x), x))
    parted = partition_for_tefuse(from_onnx(model), composites=[residual])
    assert selfbyoc.report(parted).counts == {"residual": 1}
    x = np.random.default_rng(0).standard_normal((2, 5)).astype("float32")
    np.testing.assert_allclose(selfbyoc.build(parted)(x)[0], np.maximum(x, 0) + x)


@pytest.mark.parametrize("around", [op.tanh, lambda x: x], ids=["neighbours", "alone"])
@pytest.mark.parametrize("mode", ["bytecode", "compiled"])
def test_modes_of_execution(around, mode, compiler, tmp_path):
    """Code that calls a kernel finds it in memory, and in a library on disk."""
    params = {"x": ((3, 17), "float32")}
    mod = emit(lambda x: around(op.softmax(around(x))), params)
    parted = partition_for_tefuse(mod)
    assert selfbyoc.report(parted).counts == {"softmax": 1}
    x = np.random.default_rng(0).standard_normal((3, 17)).astype("float32")
    (expected,) = evaluate(ir.read(mod["main"]), [x])
    coded = relax.transform.RunCodegen()(parted)
    built = relax.build(coded, host_target(), exec_mode=mode)
    built.export_library(str(tmp_path / "model.so"))
    for module in (built, tvm.runtime.load_module(str(tmp_path / "model.so"))):
        found = relax.VirtualMachine(module, tvm.cpu())["main"](tensor(x)).numpy()
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_compiled_with_two_results_and_shared_kernels():
    """A kernel of several outputs, and one that is called twice."""
    both = Composite("both", lambda x: (op.relu(x), op.tanh(op.relu(x))))
    mod = emit(lambda x: both.pattern(both.pattern(x)[1]), {"x": ((5, 7), "float32")})
    parted = partition_for_tefuse(mod, composites=[both])
    x = np.random.default_rng(0).standard_normal((5, 7)).astype("float32")
    expected = evaluate(ir.read(mod["main"]), [x])
    coded = relax.transform.RunCodegen()(parted)
    built = relax.build(coded, host_target(), exec_mode="compiled")
    found = relax.VirtualMachine(built, tvm.cpu())["main"](tensor(x))
    assert len(found) == len(expected) == 2
    for result, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(result.numpy(), wanted, atol=1e-6)


def test_a_fully_matched_model_needs_no_compiler(monkeypatch):
    monkeypatch.setattr(cc, "get_cc", lambda: None)
    library = selfbyoc.build(emit(lambda x: op.softmax(x), {"x": ((3, 17), "float32")}))
    assert library.report.counts == {"softmax": 1}
    assert not library.report.left
    np.testing.assert_allclose(library(np.ones((3, 17), "float32"))[0], 1 / 17, rtol=1e-6)
    sources = selfbyoc.build(emit(lambda x: op.softmax(x), {"x": ((3, 17), "float32")}), "c")
    with pytest.raises(TargetError, match="to call C sources needs a C\\+\\+ compiler: found none"):
        sources(np.ones((3, 17), "float32"))


def test_constants_of_no_element():
    """0.27's virtual machine cannot load one: "Invalid DLTensor file format" at the first call."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", R.Tensor((2, 3), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            none = relax.const(np.zeros((2, 0), "float32"))
            joined = builder.emit(relax.op.concat([none, x, none], axis=1))
            found = builder.emit_output((joined, relax.op.ones((1, 0, 3), "float32"), none))
        builder.emit_func_output(found)
    given = np.arange(6, dtype="float32").reshape(2, 3)
    joined, *empty = selfbyoc.build(builder.get(), cache=False)(given)
    np.testing.assert_array_equal(joined, given)
    assert [a.shape for a in empty] == [(1, 0, 3), (2, 0)]
