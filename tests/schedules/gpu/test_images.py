"""Two convolutions as one kernel of a GPU, the image between in shared memory."""

import pytest
from on_gpu import HERE, needs_opencl, verified

from selfbyoc.analysis.gpu.cases import made
from selfbyoc.analysis.gpu.checks import check
from selfbyoc.tvm import make_target

CHAIN = next(c for c in HERE if c.name == "conv2d_relu_conv2d_relu")
SEPARABLE = next(c for c in HERE if c.name == "depthwise_pointwise")
CUDA = {"kind": "cuda", "arch": "sm_80"}


def case_of(composite, name):
    return next(c for c in composite.cases if c.name == name)


def kernel_of(case, **limits):
    (found,) = made(CHAIN, case, make_target({**CUDA, **limits}))
    return found.lowered


@pytest.mark.parametrize("case", CHAIN.cases, ids=lambda c: c.name)
def test_one_kernel(case):
    found = check(kernel_of(case))
    (kernel,) = found.kernels
    assert kernel.shared > 0
    assert kernel.barriers >= 4  # weights twice, before they are written and before they are read
    assert (found.wrong, found.slow, kernel.unknown) == ([], [], ())


def test_a_thread_block_without_the_memory():
    """A tile of one pixel and the weights of one input channel need more than that."""
    small = kernel_of(CHAIN.cases[1], max_shared_memory_per_block=2048)
    assert len(small.launches) > 1


@needs_opencl
@pytest.mark.parametrize("name", ["strided-first", "strided-second", "pointwise"])
def test_numbers(name):
    is_right(CHAIN, case_of(CHAIN, name))


@needs_opencl
@pytest.mark.parametrize("name", ["no-bias", "batch-norm"])
def test_a_result_of_sums_and_stages_of_one_channel_each(name):
    (found,) = made(SEPARABLE, case := case_of(SEPARABLE, name), make_target(CUDA))
    assert len(found.lowered.launches) == 1
    is_right(SEPARABLE, case)


def is_right(composite, case):
    found = verified(composite, case, ["random", "borders"])
    assert found.counts == {"passed": 1}, str(found)
