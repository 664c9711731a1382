"""The target reaches the kernel: told to partition, in force around RunCodegen, or given to
build.
"""

import numpy as np
import pytest
from tvm import relax
from tvm.script import relax as R

import selfbyoc
from selfbyoc import Composite, host_target, op, partition_for_tefuse
from selfbyoc.codegen import relax as coding
from selfbyoc.codegen.relax import calls as calls
from selfbyoc.errors import TargetError
from selfbyoc.ir.emit import emit
from selfbyoc.machine import host
from selfbyoc.runtime import relax as runtime
from selfbyoc.tvm import make_target, module_source, register_func, target_dict, tensor, tvm

ARGS = {"x": ((1, 4, 9, 9), "float32"), "w": ((8, 4, 3, 3), "float32")}
conv_relu = Composite("conv_relu", lambda x, w: op.relu(op.conv2d(x, w)))
RNG = np.random.default_rng(0)
W = RNG.standard_normal((8, 4, 3, 3)).astype("float32")
X = RNG.standard_normal((1, 4, 9, 9)).astype("float32")


def model():
    return emit(lambda x, w: op.relu(op.relu(op.conv2d(x, w, padding=1))), ARGS, {"w": W})


def kernels(coded):
    return list(coded.attrs["external_mods"])


CPUS = [("llvm", "%xmm"), ("llvm -mcpu=haswell", "%ymm"), ("llvm -mcpu=skylake-avx512", "%zmm")]


@pytest.mark.parametrize(("target", "vector"), CPUS)
@pytest.mark.parametrize("how", ["told", "in force"])
def test_vector_width(target, vector, how):
    told = target if how == "told" else None
    parted = partition_for_tefuse(model(), target=told, composites=[conv_relu])
    with make_target(target):
        (module,) = kernels(relax.transform.RunCodegen()(parted))
    assembly = module_source(module, "asm")
    assert vector in assembly
    wider = {"%xmm": "%ymm", "%ymm": "%zmm"}.get(vector)
    assert wider is None or wider not in assembly


def test_without_a_word_it_is_the_host():
    parted = partition_for_tefuse(model(), composites=[conv_relu])
    (module,) = kernels(relax.transform.RunCodegen()(parted))
    cpu = target_dict(host_target()).get("mcpu")
    assert cpu is None or f'"target-cpu"="{cpu}"' in module_source(module, "ll")


def test_a_mismatch_is_an_error():
    parted = partition_for_tefuse(model(), target="llvm -mcpu=haswell", composites=[conv_relu])
    with (
        make_target("llvm -mcpu=skylake-avx512"),
        pytest.raises(TargetError, match="was given the target"),
    ):
        relax.transform.RunCodegen()(parted)


def test_c_target_builds_exports_and_runs(tmp_path):
    """Both the kernel and the rest of the model are C sources; they must link into one library."""
    library = selfbyoc.build(model(), "c", composites=[conv_relu])
    library.export_library(tmp_path / "model.so")
    found = selfbyoc.load(tmp_path / "model.so", library)(X)[0]
    expected = selfbyoc.build(model(), composites=[conv_relu])(X)[0]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_cuda_source_without_a_device():
    register_func("tvm_callback_cuda_compile", lambda code, target=None: code, override=True)
    target = make_target("cuda")
    parted = partition_for_tefuse(model(), target=target, composites=[conv_relu])
    with target:
        coded = relax.transform.RunCodegen()(parted)
    (module,) = kernels(coded)
    assert "__global__" in module_source(next(iter(module.imports)))
    tvm.compile(coded, target)


def test_target_forms():
    forms = [
        "llvm -mcpu=haswell",
        {"kind": "llvm", "mcpu": "haswell"},
        '{"kind": "llvm", "mcpu": "haswell"}',
    ]
    found = [target_dict(make_target(form)) for form in forms]
    assert found[0] == found[1] == found[2]
    assert found[0]["mcpu"] == "haswell"


@pytest.mark.parametrize(("target", "vector"), [*CPUS, ("c", "conv2d")])
def test_the_target_of_tvm_compile_alone(target, vector):
    """Nothing was told before tvm.compile: the kernel is built again for what it compiles for."""
    parted = partition_for_tefuse(model(), composites=[conv_relu])
    executable = tvm.compile(relax.transform.RunCodegen()(parted), make_target(target))
    if target == "c":
        assert any(vector in module_source(m) for m in executable.mod.imports if m.kind == "c")
    else:
        main = [m for m in executable.mod.imports if "tefuse" in module_source(m, "ll")]
        assert any(vector in module_source(m, "asm") for m in main)
        if not host.runs(target):
            return
    found = relax.VirtualMachine(executable, tvm.cpu())["main"](tensor(X)).numpy()
    expected = selfbyoc.build(model(), composites=[conv_relu])(X)[0]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_tvm_compile_for_another_target_than_told():
    parted = partition_for_tefuse(model(), target="llvm -mcpu=haswell", composites=[conv_relu])
    with pytest.raises(TargetError, match=r"built for .*haswell.*, but the module is compiled for"):
        tvm.compile(relax.transform.RunCodegen()(parted), make_target("llvm -mcpu=skylake-avx512"))


def test_the_same_function_for_two_targets_at_once():
    """Their symbol is one: what is known of the one kernel was taken for the other's."""
    parted = partition_for_tefuse(model(), composites=[conv_relu])
    first, second = make_target("llvm -mcpu=haswell"), make_target("llvm -mcpu=skylake-avx512")
    coded = {}
    for target in (first, second):
        with target:
            coded[target] = relax.transform.RunCodegen()(parted)
    for target in (first, second):
        tvm.compile(coded[target], target)
    with pytest.raises(TargetError, match="compiled for"):
        tvm.compile(coded[first], second)


def test_kernels_are_forgotten_when_they_are_compiled(monkeypatch):
    known = calls.Kernels(most=1)
    for module in (coding, calls, runtime):
        monkeypatch.setattr(module, "kernels", known)
    selfbyoc.build(model(), composites=[conv_relu])
    assert not known._known
    parted = partition_for_tefuse(model(), composites=[conv_relu])
    waiting, newer = (relax.transform.RunCodegen()(parted) for _ in range(2))
    assert len(known._known) == 1
    tvm.compile(newer, host_target())
    with pytest.raises(TargetError, match="which target this one is for is forgotten"):
        tvm.compile(waiting, host_target())


def test_calls_of_other_libraries_are_left_alone():
    """The legalisation sits on TVM's own op: other external functions must pass through it."""
    x = relax.Var("x", R.Tensor((4,), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            call = relax.op.call_dps_packed("test_copy", (x,), out_ty=R.Tensor((4,), "float32"))
            out = builder.emit_output(builder.emit(call))
        builder.emit_func_output(out)
    register_func("test_copy", lambda a, b: b.copyfrom(a.numpy() * 2) and None, override=True)
    executable = tvm.compile(builder.get(), make_target("llvm"))
    found = relax.VirtualMachine(executable, tvm.cpu())["main"](tensor(np.ones(4, "float32")))
    np.testing.assert_array_equal(found.numpy(), 2)


def test_c_codegen_reads_an_accumulator_again(tmp_path):
    """TVM's C codegen used a value from before a store for Max: this softmax gave NaN."""
    composite = next(c for c in selfbyoc.BUILTIN if c.name == "softmax")
    mod = emit(lambda x: op.softmax(x), {"x": ((3, 1), "float32")})
    parted = partition_for_tefuse(mod, target="c", composites=[composite])
    assert selfbyoc.report(parted).counts == {"softmax": 1}
    library = selfbyoc.build(parted, "c")
    library.export_library(tmp_path / "model.so")
    x = np.array([[1.0], [-2.0], [3.0]], "float32")
    found = selfbyoc.load(tmp_path / "model.so", library)(x)[0]
    np.testing.assert_array_equal(found, 1)
