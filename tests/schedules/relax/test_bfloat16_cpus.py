"""Which CPUs multiply words of bfloat16, and by which instruction: plans, and their assembly."""

import re

import pytest
from bfloat16_models import F32, dense, given, model, plan

import selfbyoc
from selfbyoc import op
from selfbyoc.analysis.kernels import kernels
from selfbyoc.codegen.cache.kernels import using
from selfbyoc.codegen.lower import lower
from selfbyoc.codegen.plan import plan_of
from selfbyoc.machine import machine
from selfbyoc.tvm import make_target, module_source
from selfbyoc.tvm.own_ops import BFLOATS

ZEN4, SAPPHIRE_RAPIDS = "llvm -mcpu=znver4", "llvm -mcpu=sapphirerapids"


def loops(mod, target):
    """The assembly of the one kernel's loops that multiply."""
    target = make_target(target)
    (kernel,) = kernels(selfbyoc.partition_for_tefuse(mod, target=target))
    with using(False):
        text = module_source(lower(kernel.source, target), "asm")
    blocks = re.split(r"\n\.LBB\w+:", text)
    return [b for b in blocks if re.search(r"\tj\w+\t\.LBB", b) and re.search("vdpbf16|vfmadd", b)]


def test_the_instruction_where_it_pays():
    arrays = given(x=(128, 768), w=(768, 768), b=(768,))
    mod = model(dense, arrays)
    assert plan(mod, ZEN4).products == BFLOATS
    found = loops(mod, ZEN4)
    assert max(loop.count("vdpbf16ps") for loop in found) >= 16
    assert not any("vfmadd" in loop for loop in found)
    for target in (SAPPHIRE_RAPIDS, "llvm -mcpu=haswell"):
        assert plan(mod, target).products == ""
        assert not any("vdpbf16ps" in loop for loop in loops(mod, target))


@pytest.mark.parametrize(
    ("image", "kernel"),
    [((1, 256, 14, 14), (256, 256, 1, 1)), ((1, 64, 56, 56), (64, 64, 1, 1)),
     ((1, 128, 7, 7), (128, 128, 3, 3))],
)  # fmt: skip
def test_the_instruction_of_convolutions(image, kernel):
    def program(x, w):
        return op.cast(op.relu(op.conv2d(x, w, padding=kernel[2] // 2)), dtype="float32")

    mod = model(program, given(x=image, w=kernel))
    found = loops(mod, ZEN4)
    assert max(loop.count("vdpbf16ps") for loop in found) >= 16
    assert not any("vfmadd" in loop for loop in found)
    for target in (SAPPHIRE_RAPIDS, "llvm -mcpu=haswell"):
        assert not any("vdpbf16ps" in loop for loop in loops(mod, target))


@pytest.mark.parametrize("cpu", ["znver4", "cooperlake"])
def test_the_instruction_around_a_depthwise_convolution(cpu):
    """By blocks of channels: the expansion and the projection; the windows are of floats."""

    def program(x, u, w, v):
        y = op.relu(op.conv2d(op.relu(op.conv2d(x, u)), w, groups=144, padding=1))
        return op.cast(op.conv2d(y, v), dtype="float32")

    shapes = {"x": (1, 24, 56, 56), "u": (144, 24, 1, 1), "w": (144, 1, 3, 3), "v": (24, 144, 1, 1)}
    mod = model(program, given(**shapes))
    words = [loop for loop in loops(mod, f"llvm -mcpu={cpu}") if "vdpbf16ps" in loop]
    assert [loop.count("vdpbf16ps") >= 24 for loop in words] == [True, True]
    assert not any("vfmadd" in loop for loop in words)
    for target in (SAPPHIRE_RAPIDS, "llvm -mcpu=haswell"):
        assert plan(mod, target).words == (False, False)


@pytest.mark.parametrize(
    ("cpu", "pays"),
    [("znver4", True), ("znver5", True), ("cooperlake", True), ("sapphirerapids", False),
     ("cascadelake", False), ("znver3", False)],
)  # fmt: skip
def test_where_it_pays(cpu, pays):
    found = machine(make_target(f"llvm -mcpu={cpu}"))
    assert found.products_of_bfloat16 == (BFLOATS if pays else "")


def test_words_are_multiplied_as_they_lie():
    """Those packed for another CPU, too; and halves where the CPU would have words."""
    arrays = given(x=(128, 768), w=(768, 768), b=(768,))
    (kernel,) = kernels(selfbyoc.partition_for_tefuse(model(dense, arrays), target=ZEN4))
    cpus = [machine(make_target(f"llvm -mcpu={name}")) for name in ("znver4", "haswell")]
    shapes = {"words": (48, 384, 16), "halves": (48, 768, 16)}
    for cpu in cpus:
        found = {n: plan_of(kernel.match, {"weight": s}, cpu).products for n, s in shapes.items()}
        assert found == {"words": BFLOATS, "halves": ""}


@pytest.mark.parametrize(("out", "fold"), [(24, 2), (40, 1)])
def test_projections_are_multiplied_as_they_lie(out, fold):
    """Whether a packed weight has words, and how many steps of a sum side by side, it tells by
    itself; a CPU that would have decided otherwise reads it.
    """

    def program(x, w, v):
        return op.conv2d(op.conv2d(x, w, groups=64, padding=1), v)

    mod = model(program, given(x=(1, 64, 28, 28), w=(64, 1, 3, 3), v=(out, 64, 1, 1)))
    (kernel,) = kernels(selfbyoc.partition_for_tefuse(mod, target=ZEN4))
    blocks = -(-out * fold // 16)
    for word in (1, 2):
        packed = {"w_depth": (4, 1, 3, 3, 16), "w_point": (blocks, 64 // word // fold, 1, 1, 16)}
        for name in ("znver4", "haswell"):
            found = plan_of(kernel.match, packed, machine(make_target(f"llvm -mcpu={name}")))
            assert (found.words, found.fold) == ((False, word == 2), fold)


def test_what_a_model_has_in_floats_stays_in_floats():
    """A weight that the model itself makes floats of is multiplied by floats."""

    def program(x, w):
        return op.dense(x, op.cast(w, dtype="float32"))

    arrays = given(x=(16, 64), w=(64, 64))
    arrays["x"] = arrays["x"].astype(F32)
    assert plan(model(program, arrays), ZEN4).products == ""
