"""Relay, literally: partition_for_tefuse, an unmodified relay.build, and every executor."""

import subprocess
import sys
import tempfile

import numpy as np
import pytest
from models import ROAD_SHAPES, road_data, road_reference
from packing import ROAD, ROAD_COUNTS, conv_relu, fc
from relay_models import close, relay_model, run_graph
from tvm import relay
from tvm.contrib import graph_executor

import selfbyoc
from selfbyoc import partition_for_tefuse
from selfbyoc.codegen import progress
from selfbyoc.codegen.lower import lower
from selfbyoc.errors import InputError
from selfbyoc.partition.relay import external_functions
from selfbyoc.tir.lowering import finished
from selfbyoc.tvm import structural_equal, tvm


@pytest.fixture(name="data")
def fixture_data():
    return road_data()


@pytest.fixture(name="mod")
def fixture_mod(data):
    """The model with its parameters' types known but not their values."""
    mod = relay_model()
    typed = {n: relay.var(n, shape=s) for n, s in ROAD_SHAPES.items()}
    main = mod["main"]
    old = {p.name_hint: p for p in main.params}
    body = relay.bind(main.body, {old[n]: v for n, v in typed.items()})
    params = [typed.get(p.name_hint, p) for p in main.params]
    return tvm.IRModule.from_expr(relay.Function(params, body))


@pytest.fixture(name="expected")
def fixture_expected(data):
    x, params = data
    return road_reference(x, params)


def test_graph_executor(mod, data, expected):
    x, params = data
    parted = partition_for_tefuse(mod, params, composites=ROAD)
    assert selfbyoc.report(parted).counts == ROAD_COUNTS
    assert len(external_functions(parted)) == 4
    lib = relay.build(parted, target="llvm", params=params)
    close(run_graph(lib, x), expected)


def test_weights_that_are_not_constant(mod, data, expected):
    """The same weights as inputs: packed at run time."""
    x, params = data
    parted = partition_for_tefuse(mod, composites=ROAD)
    lib = relay.build(parted, target="llvm")
    close(run_graph(lib, x, **params), expected)


def test_params_bound_by_relay_build_only(mod, data, expected):
    x, params = data
    lib = relay.build(partition_for_tefuse(mod, composites=ROAD), target="llvm", params=params)
    close(run_graph(lib, x), expected)


@pytest.mark.parametrize("opt_level", [0, 1, 2, 3])
def test_every_opt_level(mod, data, expected, opt_level):
    x, params = data
    with tvm.transform.PassContext(opt_level=opt_level):
        lib = relay.build(partition_for_tefuse(mod, params, composites=ROAD), target="llvm")
    close(run_graph(lib, x), expected)


def run_graph_executor(parted, x):
    return run_graph(relay.build(parted, target="llvm"), x)


def run_vm(parted, x):
    executable = relay.vm.compile(parted, target="llvm")
    return tvm.runtime.vm.VirtualMachine(executable, tvm.cpu()).run(x).numpy()


def run_aot(parted, x):
    lib = relay.build(
        parted,
        target="llvm",
        executor=relay.backend.Executor("aot", {"interface-api": "packed", "unpacked-api": False}),
        runtime=relay.backend.Runtime("cpp"),
    )
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/aot.so"
        lib.export_library(path)
        loaded = tvm.runtime.load_module(path)
        module = tvm.runtime.executor.AotModule(loaded["default"](tvm.cpu()))
    module.set_input("x", x)
    module.run()
    return module.get_output(0).numpy()


EXECUTORS = {"graph": run_graph_executor, "vm": run_vm, "aot": run_aot}


@pytest.mark.parametrize("executor", ["vm", "aot"])
def test_other_executors(executor, mod, data, expected):
    x, params = data
    parted = partition_for_tefuse(mod, params, composites=ROAD)
    close(EXECUTORS[executor](parted, x), expected)


RELOAD = """
import sys, numpy as np, tvm
from tvm.contrib import graph_executor
x = np.load(sys.argv[2])
module = graph_executor.GraphModule(tvm.runtime.load_module(sys.argv[1])["default"](tvm.cpu()))
module.set_input("x", x)
module.run()
np.save(sys.argv[3], module.get_output(0).numpy())
assert "selfbyoc" not in sys.modules
"""


def test_exported_library_runs_without_this_package(mod, data, expected, tmp_path):
    x, params = data
    lib = relay.build(partition_for_tefuse(mod, params, composites=ROAD), target="llvm")
    lib.export_library(str(tmp_path / "model.so"))
    np.save(tmp_path / "x.npy", x)
    args = [str(tmp_path / n) for n in ("model.so", "x.npy", "y.npy")]
    subprocess.run([sys.executable, "-c", RELOAD, *args], check=True, timeout=120)
    close(np.load(tmp_path / "y.npy"), expected)


@pytest.mark.parametrize("executor", ["graph", "vm", "aot"])
def test_identical_composites_are_compiled_once(executor, monkeypatch):
    """Three layers of one shape with different weights; two of them in one expression."""
    compiled = []
    monkeypatch.setattr(progress, "lower", lambda *args: compiled.append(args) or lower(*args))
    rng = np.random.default_rng(0)
    x = relay.var("x", shape=(5, 17))
    weights = [rng.standard_normal((17, 17)).astype("float32") for _ in range(3)]
    first, second, third = map(relay.const, weights)
    y = relay.nn.relu(relay.nn.dense(x, first))
    both = [relay.nn.relu(relay.nn.dense(y, w)) for w in (second, third)]
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.subtract(*both)))
    parted = partition_for_tefuse(mod, composites=[fc])
    assert len({r.symbol for r in selfbyoc.report(parted).matched}) == 1
    data = rng.standard_normal((5, 17)).astype("float32")
    layers = [lambda v, w=w: np.maximum(v @ w.T, 0) for w in weights]
    hidden = layers[0](data)
    close(EXECUTORS[executor](parted, data), layers[1](hidden) - layers[2](hidden))
    assert len(compiled) == 1


def test_two_exported_models_in_one_process(tmp_path):
    """The same composites in two models: their symbols differ, so both libraries load side by
    side.
    """
    paths = []
    for n in (4, 6):
        a, w = relay.var("x", shape=(2, n)), relay.var("w", shape=(5, n))
        mod = tvm.IRModule.from_expr(relay.Function([a, w], relay.nn.relu(relay.nn.dense(a, w))))
        parted = partition_for_tefuse(mod, {"w": np.ones((5, n), "float32")}, composites=[fc])
        relay.build(parted, target="llvm").export_library(str(tmp_path / f"{n}.so"))
        paths.append((n, str(tmp_path / f"{n}.so")))
    libs = [(n, tvm.runtime.load_module(p)) for n, p in paths]
    for n, lib in libs:
        close(run_graph(lib, np.ones((2, n), "float32")), np.full((2, 5), n))


def test_the_users_module_is_untouched(mod, data):
    before = mod.astext()
    partition_for_tefuse(mod, data[1], composites=ROAD)
    assert mod.astext() == before


def test_merged_compiler_regions(mod, data, expected, monkeypatch):
    """TVM's own pass may put several composites into one external function: the hook stacks them
    all.
    """
    x, params = data
    from selfbyoc.ir.relay import read
    from selfbyoc.partition import relay as ir
    from selfbyoc.partition.select import select

    prepared = ir.prepare(mod, params)
    matches, _ = select(read(prepared["main"]), [conv_relu, fc])
    merged = ir.composites_only(prepared, matches)
    parted = tvm.transform.Sequential(
        [
            relay.transform.AnnotateTarget("tefuse"),
            relay.transform.MergeCompilerRegions(),
            relay.transform.PartitionGraph(bind_constants=False),
        ]
    )(merged)
    from selfbyoc.language.known import remember

    for composite in (conv_relu, fc):
        remember(composite)
    assert len(external_functions(parted)) < len(matches)
    named = []

    def noted(func, target):
        named.append(str(func.attrs["Composite"]))
        return finished(func, target)

    monkeypatch.setattr("selfbyoc.codegen.lower.finished", noted)
    close(run_graph(relay.build(parted, target="llvm"), x), expected)
    assert set(named) == {"tefuse.conv_relu", "tefuse.fc"}


def test_bodies_put_aside(mod, data):
    """Marking with the composites' bodies put aside gives what TVM's passes give with them."""
    from selfbyoc.ir.relay import read
    from selfbyoc.ir.relay.hollow import hollow, whole
    from selfbyoc.partition import relay as ir
    from selfbyoc.partition.select import select

    prepared = ir.prepare(mod, data[1])
    matches, _ = select(read(prepared["main"]), [conv_relu, fc])
    passes = [
        relay.transform.AnnotateTarget("tefuse", include_non_call_ops=False),
        relay.transform.PartitionGraph(ir._model_name(prepared), bind_constants=False),
        relay.transform.InferType(),
    ]
    wanted = tvm.transform.Sequential(passes)(ir.composites_only(prepared, matches))
    marked, _ = ir.mark(prepared, matches)
    assert structural_equal(marked, wanted)
    for func in external_functions(marked).values():
        func = func.without_attr("global_symbol")
        func = relay.transform.InferType()(tvm.IRModule.from_expr(func))["main"]
        empty = relay.transform.InferType()(tvm.IRModule.from_expr(hollow(func)))["main"]
        assert empty.checked_type == func.checked_type
        assert not structural_equal(empty, func)
        assert whole(empty).same_as(func)
        assert whole(func).same_as(func)


def test_composite_attributes_are_tvms_own(mod, data):
    """Composite and PartitionedFromPattern name what was merged (wish A18, A22)."""
    parted = partition_for_tefuse(mod, data[1], composites=[conv_relu])
    func = next(iter(external_functions(parted).values()))
    composite = func.body.op
    assert composite.attrs["Composite"] == "tefuse.conv_relu"
    assert composite.attrs["PartitionedFromPattern"] == "nn.conv2d_nn.bias_add_nn.relu_"
    assert func.attrs["Compiler"] == "tefuse"


def test_relay_build_alone_refuses_two_heavy_ops():
    """The RFC's program as one Primitive function: why this library exists (wish C2, C3)."""
    x = relay.var("x", shape=(1, 3, 16, 16))
    weights = [relay.var("w1", shape=(8, 3, 3, 3)), relay.var("w2", shape=(8, 8, 3, 3))]
    y = x
    for w in weights:
        y = relay.nn.relu(relay.nn.conv2d(y, w, padding=(1, 1), channels=8, kernel_size=(3, 3)))
    primitive = relay.Function([x, *weights], y).with_attr("Primitive", tvm.tir.IntImm("int32", 1))
    outer = [relay.var(p.name_hint, p.type_annotation) for p in primitive.params]
    mod = tvm.IRModule.from_expr(relay.Function(outer, relay.Call(primitive, outer)))
    with pytest.raises(tvm.TVMError, match="two complicated ops"):
        relay.build(mod, target="llvm")


def test_weights_once(tmp_path):
    """TVM 0.17 exports every weight twice beside an external module; the second copy can go."""
    x, w = relay.var("x", shape=(2, 512)), relay.var("w", shape=(256, 512))
    mod = tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.relu(relay.nn.dense(x, w))))
    weight = np.random.default_rng(0).standard_normal((256, 512)).astype("float32")
    lib = relay.build(partition_for_tefuse(mod, {"w": weight}, composites=[fc]), target="llvm")
    lean = selfbyoc.weights_once(lib)
    sizes = []
    for name, built in (("twice", lib), ("once", lean)):
        built.export_library(str(tmp_path / f"{name}.so"))
        sizes.append((tmp_path / f"{name}.so").stat().st_size)
    assert sizes[0] > 2 * weight.nbytes
    assert weight.nbytes < sizes[1] < 1.2 * weight.nbytes
    data = np.random.default_rng(1).standard_normal((2, 512)).astype("float32")
    loaded = tvm.runtime.load_module(str(tmp_path / "once.so"))
    module = graph_executor.GraphModule(loaded["default"](tvm.cpu()))
    module.set_input("x", data)
    module.run()
    np.testing.assert_allclose(
        module.get_output(0).numpy(), np.maximum(data @ weight.T, 0), atol=1e-3
    )


def test_ir_of_the_other_generation():
    """TVM 0.17 has a Relax of its own, which is not the one this library is tested on."""
    from tvm import relax
    from tvm.script import relax as R

    builder = relax.BlockBuilder()
    x = relax.Var("x", R.Tensor((4,), "float32"))
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.op.nn.relu(x)))
    with pytest.raises(
        InputError, match=r"expected `main` as a Relay function .* found tvm\.relax"
    ):
        partition_for_tefuse(builder.get())


def test_let_is_refused_with_the_remedy():
    x, y = relay.var("x", shape=(4,)), relay.var("y", shape=(4,))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.Let(y, relay.nn.relu(x), relay.tanh(y))))
    with pytest.raises(InputError, match=r"run relay\.transform\.ToGraphNormalForm"):
        partition_for_tefuse(mod)


def test_an_extent_that_data_decide_is_refused_and_left_to_tvm():
    shape = relay.var("shape", shape=(2,), dtype="int64")
    x, w = relay.var("x", shape=(24,)), relay.var("w", shape=(5, 8))
    y = relay.nn.relu(relay.nn.dense(relay.reshape(x, shape), w))
    mod = tvm.IRModule.from_expr(relay.Function([x, shape, w], y))
    library = selfbyoc.build(mod, "llvm", composites=[fc])
    (record,) = library.report.records
    text = "x has an extent that is not known when compiling: float32[dynamic, dynamic]"
    assert record.reason == text
    x, w = np.ones(24, "float32"), np.ones((5, 8), "float32")
    close(library(x, np.array([3, 8]), w)[0], np.full((3, 5), 8.0))


def test_functions_of_another_partitioner_are_left_alone():
    """A composite that somebody else marked is opaque: nothing inside it is taken."""
    x, w = relay.var("x", shape=(3, 8)), relay.var("w", shape=(5, 8))
    inner_x, inner_w = relay.var("a", shape=(3, 8)), relay.var("b", shape=(5, 8))
    inner = relay.Function([inner_x, inner_w], relay.nn.relu(relay.nn.dense(inner_x, inner_w)))
    call = relay.Call(inner.with_attr("Composite", "theirs.dense_relu"), [x, w])
    mod = tvm.IRModule.from_expr(relay.Function([x, w], relay.tanh(call)))
    report = selfbyoc.report(partition_for_tefuse(mod, composites=[fc]))
    assert report.counts == {}
    assert report.left == {"call": 1, "tanh": 1}


@pytest.mark.parametrize("attrs", [{}, {"Composite": "theirs.dense"}], ids=["plain", "composite"])
def test_functions_that_main_calls_stay_what_they_are(attrs):
    """Their bodies became zeros, as those of our composites do while TVM's passes run."""
    x, w = relay.var("x", shape=(3, 8)), relay.var("w", shape=(5, 8))
    inner_x, inner_w = relay.var("a", shape=(3, 8)), relay.var("b", shape=(5, 8))
    inner = relay.Function([inner_x, inner_w], relay.nn.dense(inner_x, inner_w))
    for name, value in attrs.items():
        inner = inner.with_attr(name, value)
    outer = relay.nn.relu(relay.nn.dense(relay.Call(inner, [x, w]), relay.ones((7, 5), "float32")))
    parted = partition_for_tefuse(
        tvm.IRModule.from_expr(relay.Function([x, w], outer)), composites=[fc]
    )
    assert selfbyoc.report(parted).counts == {"fc": 1}
    machine = tvm.runtime.vm.VirtualMachine(relay.vm.compile(parted, target="llvm"), tvm.cpu())
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s).astype("float32") for s in ((3, 8), (5, 8)))
    close(machine.run(a, b).numpy(), np.maximum(a @ b.T @ np.ones((5, 7), "float32"), 0))
