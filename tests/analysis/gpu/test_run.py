"""Kernels for a GPU compute what NumPy says: as OpenCL, which runs on the CPU."""

import pytest
from matrix_cells import smallest
from on_gpu import FEW, HERE, needs_opencl, verified

pytestmark = needs_opencl


@pytest.mark.parametrize("composite", FEW)
def test_a_composite(composite):
    found = verified(composite, smallest(composite), ["random", "borders"])
    assert found.counts == {"passed": 1}, str(found)


def test_levels_are_rounded():
    """By OpenCL's `rint`: its C has no `nearbyint`, which 0.17 prints."""
    (few_bits,) = [c for c in HERE if c.name == "dense_few_bits"]
    found = verified(few_bits, smallest(few_bits), ["random"])
    assert found.counts == {"passed": 1}, str(found)


def test_what_rounds_is_not_rounded():
    """12583039, by which a sigmoid finds an exponent, has 8 digits, and TVM prints 7."""
    (gated,) = [c for c in HERE if c.name == "gated_dense"]
    found = verified(gated, smallest(gated), ["random"])
    assert found.counts == {"passed": 1}, str(found)


def test_doubles_are_not_rounded():
    """A scale of 1.696969747543335 in OpenCL's source, not 1.696970."""
    (resize,) = [c for c in HERE if c.name == "resize2d"]
    (case,) = [c for c in resize.cases if c.name == "smaller"]
    found = verified(resize, case, ["borders"])
    assert found.counts == {"passed": 1}, str(found)
