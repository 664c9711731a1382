"""What was taken without a word: unknown extents, names of no op, arguments that come too late."""

import subprocess
import sys

import numpy as np
import pytest

import selfbyoc
from selfbyoc import Case, Composite, op
from selfbyoc.errors import CompositeError, InputError, TargetError
from selfbyoc.ir.emit import emit
from selfbyoc.machine import host
from selfbyoc.machine.features import features_of


def dense(x, w):
    return op.dense(x, w)


EXTENTS = [None, -1, "n", 2.5, True]


@pytest.mark.parametrize("extent", EXTENTS, ids=str)
@pytest.mark.parametrize("with_dtype", [False, True])
def test_an_extent_that_is_none(extent, with_dtype):
    shape = (extent, 32)
    wanted = "argument 'x': expected a shape or .*, found"
    with pytest.raises(CompositeError, match=wanted):
        Case(x=(shape, "float32") if with_dtype else shape)


def test_emit_does_not_end_the_process():
    code = (
        "from selfbyoc import op\nfrom selfbyoc.ir.emit import emit\n"
        "emit(lambda x: op.relu(x), {'x': ((None, 32), 'float32')})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1].startswith("selfbyoc.errors.CompositeError")


def test_numpy_extents():
    assert Case(x=tuple(np.array([2, 3]))).args["x"] == ((2, 3), "float32")


def test_a_compute_of_no_op():
    wanted = r"compute names \['densee'\], .*did you mean 'dense'"
    with pytest.raises(CompositeError, match=wanted):
        Composite("mine", dense, compute={"densee": lambda ins, call: ins[0]})
    with pytest.raises(CompositeError, match=r"compute names \['conv2d'\]"):
        Composite("mine", dense, compute={"dense": print, "conv2d": print})


@pytest.mark.parametrize("told", [{"constants": ("v",)}, {"generations": ("relaxx",)}], ids=str)
def test_a_case_that_names_what_is_not_there(told):
    (what, (name,)) = next(iter(told.items()))
    with pytest.raises(CompositeError, match=rf"Case: {what} names \['{name}'\]; expected some"):
        Case(x=(2, 3), w=(4, 3), **told)


@pytest.mark.parametrize("late", ["composites", "params"])
def test_what_a_partitioned_module_cannot_take(late):
    parted = selfbyoc.partition_for_tefuse(emit(dense, {"x": (2, 8), "w": (8, 8)}))
    given = {"composites": [], "params": {"w": np.zeros((8, 8), "float32")}}
    with pytest.raises(InputError, match=f"{late}: this module is partitioned already"):
        selfbyoc.build(parted, **{late: given[late]})


@pytest.mark.parametrize("given", [np.zeros((7, 8), "float32"), np.zeros((8, 8))], ids=str)
def test_weights_of_another_type(given):
    mod = emit(dense, {"x": (2, 8), "w": (8, 8)})
    found = rf"found {given.dtype}\[{given.shape[0]}, 8\]"
    with pytest.raises(InputError, match=rf"params: w: expected float32\[8, 8\], {found}"):
        selfbyoc.build(mod, params={"w": given})


@pytest.mark.parametrize("field", ["kind", "mcpu", "keys", "num-cores"])
@pytest.mark.parametrize("value", [None, [None]], ids=str)
def test_a_target_that_holds_none(field, value):
    """TVM 0.17 ends the process at it."""
    mod = emit(dense, {"x": (2, 8), "w": (8, 8)})
    with pytest.raises(TargetError, match=rf"\['{field}'\].* is None; expected a value"):
        selfbyoc.build(mod, {"kind": "llvm", "keys": ["cpu"], field: value})


@pytest.mark.parametrize("name", ["haswel", ""])
def test_an_unknown_cpu(name, capfd):
    with pytest.raises(TargetError, match=f"knows no -mcpu={name}"):
        selfbyoc.build(emit(dense, {"x": (2, 8), "w": (8, 8)}), f"llvm -mcpu={name}")
    assert not capfd.readouterr().err


@pytest.mark.parametrize("feature", ["+avx9000", "-avx51f", "+"])
def test_an_unknown_feature(feature):
    wanted = rf"-mattr=\{feature}: LLVM \d+ knows no such feature"
    with pytest.raises(TargetError, match=wanted):
        selfbyoc.build(emit(dense, {"x": (2, 8), "w": (8, 8)}), f"llvm -mattr={feature}")


@pytest.mark.parametrize("triple", ["foo-bar", "x86-linux-gnu", "aarch46-linux-gnu", "-", "armv"])
@pytest.mark.parametrize("more", ["", " -mcpu=generic", " -mattr=+avx2"])
def test_an_unknown_architecture(triple, more):
    """LLVM's lists end the process at it."""
    name = triple.partition("-")[0]
    with pytest.raises(TargetError, match=f"LLVM knows no architecture '{name}'"):
        selfbyoc.partition_for_tefuse(
            emit(dense, {"x": (2, 8), "w": (8, 8)}), target=f"llvm -mtriple={triple}{more}"
        )


def test_a_device_that_this_tvm_generates_no_code_for():
    """No TVM tried has Vulkan's code generator; a stock build for CPUs lacks CUDA's, too."""
    if not host.no_code("vulkan"):
        pytest.skip("this TVM has a code generator for vulkan")
    for composites in (None, []):
        with pytest.raises(TargetError, match=r"without a code generator for vulkan; .*USE_VULKAN"):
            selfbyoc.build(emit(dense, {"x": (2, 8), "w": (8, 8)}), "vulkan", composites=composites)
    assert not host.no_code("llvm")
    assert not host.no_code("c")


ARCHITECTURES = ["x86_64", "amd64", "i686", "aarch64", "arm64", "armv7l", "armv8.2a", "powerpc64le"]


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_known_architectures(name):
    features_of(f"llvm -mtriple={name}-linux-gnu")
