"""The target that relay.build is given reaches the kernel, though TVM shows the hook only
`ext_dev`.
"""

import json

import numpy as np
import pytest
from harness import needs_code
from tvm import relay

from selfbyoc import Composite, build, op, partition_for_tefuse
from selfbyoc.codegen.relay import build_target
from selfbyoc.errors import LoweringError, ScheduleError
from selfbyoc.ir.emit import emit
from selfbyoc.tvm import register_func, tvm

ARGS = {"x": ((1, 4, 9, 9), "float32"), "w": ((8, 4, 3, 3), "float32")}
conv_relu = Composite("conv_relu", lambda x, w: op.relu(op.conv2d(x, w)))


def parted(**options):
    w = np.random.default_rng(0).standard_normal((8, 4, 3, 3)).astype("float32")
    mod = emit(lambda x, w: op.relu(op.conv2d(x, w, padding=1)), ARGS, {"w": w})
    return partition_for_tefuse(mod, composites=[conv_relu], **options)


def kernel(lib):
    """The runtime module of the external function."""
    (found,) = [m for m in lib.lib.imported_modules if m.implements_function(symbol(lib))]
    return found


def symbol(lib):
    nodes = json.loads(lib.get_graph_json())["nodes"]
    return next(
        n["attrs"]["func_name"]
        for n in nodes
        if "tefuse" in n.get("attrs", {}).get("func_name", "")
    )


@pytest.mark.parametrize(
    ("target", "vector"),
    [("llvm", "%xmm"), ("llvm -mcpu=haswell", "%ymm"), ("llvm -mcpu=skylake-avx512", "%zmm")],
)
def test_graph_executor(target, vector):
    lib = relay.build(parted(), target=target)
    assembly = kernel(lib).get_source("asm")
    assert vector in assembly
    wider = {"%xmm": "%ymm", "%ymm": "%zmm"}.get(vector)
    assert wider is None or wider not in assembly


def test_a_target_object_and_a_host():
    target = tvm.target.Target("llvm -mcpu=skylake-avx512", host="llvm -mcpu=skylake-avx512")
    assert "%zmm" in kernel(relay.build(parted(), target=target)).get_source("asm")


def test_relay_vm():
    executable = relay.vm.compile(parted(), target="llvm -mcpu=skylake-avx512")
    texts = [m.get_source("asm") for m in executable.lib.imported_modules if m.type_key == "llvm"]
    assert any("%zmm" in t and "tefuse" in t for t in texts)


def test_the_target_told_to_partition():
    lib = relay.build(parted(target="llvm -mcpu=haswell"), target="llvm -mcpu=haswell")
    assert "%ymm" in kernel(lib).get_source("asm")


def test_c_source():
    """The headers that compiling it needs are not in the wheel; its shared definitions must be
    weak.
    """
    lib = relay.build(parted(), target="c")
    source = kernel(lib).get_source()
    assert f"int32_t {symbol(lib)}(" in source
    assert "__attribute__((weak)) TVM_DLL int32_t __tvm_main__" in source


def test_cuda_source_without_a_device():
    register_func("tvm_callback_cuda_compile", lambda code, target=None: code, override=True)
    lib = relay.build(parted(target="cuda"), target="cuda")
    (device,) = [m for m in kernel(lib).imported_modules if m.type_key == "cuda"]
    assert "__global__" in device.get_source()


@needs_code("cuda")
def test_an_error_of_tvms_leaves_the_targets_alone():
    """A CUDA compiler that fails left its target in force, and every later build was for it."""

    def compiler(code, target=None):
        raise RuntimeError("no compiler")

    register_func("tvm_callback_cuda_compile", compiler, override=True)
    mod = emit(lambda x: op.exp(x), {"x": (3, 4)})
    with pytest.raises(LoweringError, match="no compiler"):
        build(mod, "cuda", composites=[])
    assert tvm.target.Target.current(allow_none=True) is None


def test_an_error_in_the_hook_leaves_the_targets_alone():
    """Unwinding over a changed stack of targets ended the process (TVM 0.17)."""

    def schedule(sch, ops, target):
        with tvm.target.Target("llvm -mcpu=haswell"):
            raise IndexError("while a target is in force")

    broken = Composite("broken", conv_relu.pattern, schedule=schedule)
    mod = emit(lambda x, w: op.relu(op.conv2d(x, w, padding=1)), ARGS)
    with pytest.raises(ScheduleError, match="while a target is in force"):
        relay.build(partition_for_tefuse(mod, composites=[broken]), target="llvm")
    assert tvm.target.Target.current(allow_none=True) is None


def test_outside_of_a_build_there_is_no_target():
    assert build_target() is None
