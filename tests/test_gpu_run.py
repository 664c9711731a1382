"""Kernels for a GPU compute what NumPy says: as OpenCL, which POCL runs on the CPU."""

import pytest
from cells import smallest
from gpu import needs_opencl, verified

import selfbyoc
from selfbyoc._tvm import GENERATION

pytestmark = needs_opencl
HERE = [c for c in selfbyoc.BUILTIN if any(GENERATION in case.generations for case in c.cases)]


@pytest.mark.parametrize("composite", HERE, ids=lambda c: c.name)
def test_a_composite(composite):
    found = verified(composite, smallest(composite), ["random", "borders"])
    assert found.counts == {"passed": 1}, str(found)
