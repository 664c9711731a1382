"""The CUDA source of kernels compiles, and what the assembler says of them is read."""

import gpu_mistakes as planted
import pytest
from matrix_cells import smallest
from on_gpu import FEW

from selfbyoc.analysis.gpu.cases import made
from selfbyoc.analysis.gpu.lowered import lowered
from selfbyoc.analysis.gpu.nvrtc import ARCHES, assembled
from selfbyoc.errors import LoweringError
from selfbyoc.tvm import make_target

pytestmark = pytest.mark.usefixtures("nvrtc")
CUDA = {"kind": "cuda", "arch": ARCHES[0]}


@pytest.mark.parametrize("arch", ARCHES)
def test_what_the_assembler_says(arch):
    (kernel,) = assembled(lowered(planted.columns, make_target(CUDA)).source, arch)
    assert kernel.name == "kernel_kernel"
    assert kernel.shared == 32 * 32 * 4
    assert 8 <= kernel.registers <= 255
    assert (kernel.spilled, kernel.stack) == (0, 0)


def test_sums_that_no_registers_hold_are_seen():
    (kernel,) = assembled(lowered(planted.many_sums, make_target(CUDA)).source, ARCHES[0])
    assert kernel.registers <= 64  # of 65536, for 1024 threads
    assert kernel.spilled > 0


def test_source_that_is_wrong():
    with pytest.raises(LoweringError, match='identifier "x" is undefined'):
        assembled('extern "C" __global__ void f() { x; }', ARCHES[0])


@pytest.mark.parametrize("composite", FEW)
def test_a_built_in_composite(composite):
    (kernel,) = made(composite, smallest(composite), make_target(CUDA))
    found = assembled(kernel.lowered.source, ARCHES[0])
    assert {k.name for k in found} == {launch.name for launch in kernel.lowered.launches}
