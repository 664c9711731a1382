"""Kernels for other CPUs: right where they run here, products without spills where they do not."""

import shutil
import sys
from pathlib import Path

import pytest
from harness import served

import selfbyoc
from selfbyoc.errors import ToolError
from selfbyoc.tvm import GENERATION

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
from other_cpus import aarch64, mca  # isort: skip
from other_cpus.cpus import BY_NAME, CPU, CPUS, is_known  # isort: skip
from other_cpus.kernels import hot_loops  # isort: skip
from other_cpus.loops import around_exp, hot, innermost  # isort: skip
from other_cpus.runs import RIGHT, can_run, cases, compiled, judged  # isort: skip

BUILTIN = {composite.name: composite for composite in selfbyoc.BUILTIN}
SOME = ("conv2d", "dense", "layer_norm", "max_pool2d", *(("lrn",) if GENERATION == "relay" else ()))

X86 = """
	vmovups	%ymm9, 32(%rsp)
.LBB0_1:
	xorl	%eax, %eax
.Ltmp7:
.LBB0_2:                                # the product
	vbroadcastss	(%rsi,%rax,4), %ymm2
	vfmadd231ps	(%rdi), %ymm2, %ymm0
	vfmadd231ps	32(%rsp), %ymm2, %ymm1
	vmovups	64(%rsp), %ymm3
	incq	%rax
	jne	.LBB0_2
	decq	%rcx
	jne	.LBB0_1
.LBB0_3:
	vmovups	(%rdi,%rdx), %ymm4
	vmovaps	%ymm5, %ymm6
	vfmadd213ps	%ymm7, %ymm4, %ymm6
	vfmadd213ps	%ymm8, %ymm4, %ymm6
	addq	$32, %rdx
	jne	.LBB0_3
.LBB0_4:
	vmulps	%ymm1, %ymm2, %ymm3
	decq	%rbx
	jne	.LBB0_4
	retq
"""
ARM = """
.LBB0_1:
	ldr	q1, [sp, #16]                   // 16-byte Folded Reload
	ldr	s3, [x1], #4
	fmla	v0.4s, v1.4s, v3.s[0]
	str	q2, [sp, #16]
	subs	x2, x2, #1
	b.ne	.LBB0_1
	ret
"""


def test_loops_of_x86():
    inner = innermost(X86)
    assert [loop.depth for loop in inner] == [2, 1, 1]
    assert [loop.is_polynomial for loop in inner] == [False, True, False]
    (product,) = hot(X86)
    assert product.multiply_adds == 16
    assert product.vector_bytes == 32
    assert product.spills == 1  # 64(%rsp) is an array: no whole register is ever put there
    assert product.lines[-1] == "jne\t.LBB0_2"


def test_products_around_exp():
    before, after = around_exp(X86)
    assert (before.multiply_adds, after.multiply_adds) == (16, 8)


def test_loops_of_aarch64():
    (loop,) = hot(ARM)
    assert (loop.multiply_adds, loop.vector_bytes, loop.spills) == (4, 16, 2)


def test_a_window_and_a_product_that_compute_as_much():
    window = ARM.replace("v3.s[0]", "v3.4s")
    assert len(hot(window + ARM.replace(".LBB0_1", ".LBB0_2"), 2)) == 2


def with_llvm_mca():
    try:
        mca.program()
    except ToolError as err:
        pytest.skip(str(err))


@pytest.mark.parametrize(("sums", "wanted"), [(12, 1.0), (1, 0.1)])
def test_share_of_the_peak(sums, wanted):
    """Haswell starts two multiply-adds a cycle, and each takes five."""
    with_llvm_mca()
    code = "".join(f"\tvfmadd231ps\t%ymm14, %ymm15, %ymm{n}\n" for n in range(sums))
    (loop,) = hot(f".L1:\n{code}\tdecq\t%rax\n\tjne\t.L1\n")
    assert mca.share(loop, BY_NAME["haswell"]).share == pytest.approx(wanted, rel=0.05)


def test_missing_llvm_mca(monkeypatch):
    mca.program.cache_clear()
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(ToolError, match="apt-get install llvm-19"):
        mca.program()


# LLVM 10 adds moves of registers and 32-bit index arithmetic (docs/makers/portability.md).
LEAST_SHARE = 0.85 if GENERATION == "relax" else 0.75


@pytest.mark.parametrize(
    ("kernel", "cpu"),
    [
        ("pointwise", "neoverse-n1"),
        ("pointwise", "skylake-avx512"),
        ("depthwise_pointwise", "neoverse-n1"),
        ("int8_pointwise", "cascadelake"),
        ("int8_direct", "haswell"),
    ],
)
def test_no_spill_in_a_product(kernel, cpu):
    *_, loop = hot_loops(kernel, BY_NAME[cpu].target)
    assert loop.spills == 0
    assert loop.multiply_adds >= 64
    with_llvm_mca()
    assert mca.share(loop, BY_NAME[cpu]).share >= LEAST_SHARE


@pytest.mark.parametrize("cpu", [cpu for cpu in CPUS if not cpu.is_arm], ids=lambda cpu: cpu.name)
@pytest.mark.parametrize("name", SOME)
def test_other_cpus_of_x86(name, cpu):
    if not is_known(cpu) or not can_run(cpu):
        pytest.skip(f"no code for {cpu.name} from this LLVM, or it does not run here")
    assert judged(BUILTIN[name], cases(BUILTIN[name])[-1], cpu) == [RIGHT]


@pytest.mark.parametrize("name", ["conv2d", "dense", "softmax"])
def test_aarch64_under_qemu(name):
    served(aarch64.cannot_run())
    smallest = cases(BUILTIN[name])[-1]
    assert judged(BUILTIN[name], smallest, BY_NAME["neoverse-n1"]) == [RIGHT]


def test_missing_emulator(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(ToolError, match="apt-get install qemu-user gcc-aarch64-linux-gnu"):
        aarch64.check_tools()


def test_unknown_cpu():
    (result,) = compiled([BUILTIN["softmax"]], [CPU("znver99")])
    assert result.verdict.startswith("unknown to LLVM")
    assert not result.is_failure
    assert not can_run(BY_NAME["neoverse-n1"])
