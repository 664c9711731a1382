"""Kernels for a GPU compute what NumPy says: as OpenCL, which POCL runs on the CPU."""

import pytest
from cells import smallest
from on_gpu import FEW, needs_opencl, verified

pytestmark = needs_opencl


@pytest.mark.parametrize("composite", FEW)
def test_a_composite(composite):
    found = verified(composite, smallest(composite), ["random", "borders"])
    assert found.counts == {"passed": 1}, str(found)
