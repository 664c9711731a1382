"""Loops that multiply levels, as llvm-mca is asked of them: by the instructions of each CPU."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
from other_cpus import mca  # isort: skip
from other_cpus.cpus import BY_NAME  # isort: skip
from other_cpus.loops import hot  # isort: skip
from other_cpus.products import (  # isort: skip
    FLOATS, MLA, PMADDWD, SDOT, SMLAL, USDOT, VPDPBUSD, VPDPWSSD,
)  # fmt: skip
from other_cpus.table import Row  # isort: skip

VNNI = """
	vpbroadcastd	(%rbx,%rdx,4), %zmm27
	vpdpbusd	-64(%rcx), %zmm27, %zmm23
	vpdpbusd	%zmm27, %zmm25, %zmm22
"""
AVX_VNNI = """
	vmovdqu	112(%rsp), %ymm10
	{vex}	vpdpbusd	%ymm0, %ymm14, %ymm10
	vmovdqu	%ymm10, 112(%rsp)
"""
WORDS_OF_TWO = """
	vpbroadcastd	(%rbx,%rdx,4), %zmm27
	vpdpwssd	%zmm27, %zmm26, %zmm23
"""
PAIRS = """
	vpmaddwd	(%rcx), %ymm3, %ymm5
	vpaddd	%ymm5, %ymm0, %ymm0
	vpmaddwd	%ymm4, %ymm3, %ymm5
	vpaddd	%ymm5, %ymm1, %ymm1
"""
PAIRS_OF_SSE = """
	movdqa	%xmm4, %xmm5
	pmaddwd	%xmm3, %xmm5
	paddd	%xmm5, %xmm0
	movdqa	%xmm0, 16(%rsp)
"""
DOTS = """
	ld1r	{ v0.4s }, [x5]
	ldp	q11, q12, [x8, #-16]
	sdot	v25.4s, v11.16b, v0.16b
	sdot	v24.4s, v12.16b, v0.4b[0]
"""
LONG = """
	ldr	q1, [x1], #16
	smlal	v4.4s, v1.4h, v0.h[0]
	smlal2	v5.4s, v1.8h, v0.h[0]
	smull	x3, w4, w5
"""
WRITTEN_OUT = """
	sshr	v8.4s, v26.4s, #16
	mla	v0.4s, v8.4s, v24.4s
	mul	v1.4s, v8.4s, v25.4s
	mul	x3, x4, x5
"""
ADDRESSES = """
	mul	v7.4s, v6.4s, v5.4s
	fmla	v0.4s, v1.4s, v2.4s
	fmla	v3.4s, v1.4s, v4.4s
"""


def only_loop(code):
    jump = "jne" if "%" in code else "b.ne"
    (loop,) = hot(f".L1:{code}\t{jump}\t.L1\n")
    return loop


@pytest.mark.parametrize(
    ("code", "product", "multiply_adds", "vector_bytes", "spills"),
    [
        pytest.param(VNNI, VPDPBUSD, 2 * 64, 64, 0, id="vpdpbusd"),
        pytest.param(AVX_VNNI, VPDPBUSD, 32, 32, 2, id="{vex}"),
        pytest.param(WORDS_OF_TWO, VPDPWSSD, 32, 64, 0, id="vpdpwssd"),
        pytest.param(PAIRS, PMADDWD, 2 * 16, 32, 0, id="vpmaddwd"),
        pytest.param(PAIRS_OF_SSE, PMADDWD, 8, 16, 1, id="pmaddwd"),
        pytest.param(DOTS, SDOT, 2 * 16, 16, 0, id="sdot"),
        pytest.param(DOTS.replace("sdot", "usdot"), USDOT, 2 * 16, 16, 0, id="usdot"),
        pytest.param(LONG, SMLAL, 2 * 4, 16, 0, id="smlal"),
        pytest.param(WRITTEN_OUT, MLA, 2 * 4, 16, 0, id="mla"),
        pytest.param(ADDRESSES, FLOATS, 2 * 4, 16, 0, id="floats beside addresses"),
    ],
)
def test_loops_of_levels(code, product, multiply_adds, vector_bytes, spills):
    loop = only_loop(code)
    assert loop.product is product
    assert (loop.multiply_adds, loop.vector_bytes, loop.spills) == (
        multiply_adds, vector_bytes, spills,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("cpu", "product", "started"),  # instructions a cycle
    [
        ("x86-64", PMADDWD, 1),
        ("haswell", PMADDWD, 1),
        ("alderlake", VPDPBUSD, 2),
        ("cascadelake", VPDPBUSD, 2),
        ("cascadelake", VPDPWSSD, 2),
        ("cortex-a72", MLA, 0.5),
        ("cortex-a72", SMLAL, 1),
        ("neoverse-n1", SDOT, 2),
        ("neoverse-v2", USDOT, 4),
    ],
)
def test_peaks_of_levels(cpu, product, started):
    chosen = BY_NAME[cpu]
    width = {"x86-64": 16, "cascadelake": 64}.get(cpu, 16 if chosen.is_arm else 32)
    lanes = width // 4
    wanted = started * lanes * product.in_lane
    assert mca.peak(chosen, width, product) == pytest.approx(wanted, rel=0.02)


@pytest.mark.parametrize(
    ("kernel", "cell"),
    [("int8_dense", "vpdpbusd **25%** of 64 (2 spills)"), ("direct", "**25%** (2 spills)")],
)
def test_a_cell_tells_the_instruction_for_levels(kernel, cell):
    found = mca.Share(only_loop(AVX_VNNI), cycles=2.0, per_cycle=16.0, peak=64.0)
    assert Row(kernel, BY_NAME["alderlake"], (("product", found),)).cell == cell
