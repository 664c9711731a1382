"""Kernels for a GPU compute what NumPy says, on one: where CuPy and an NVIDIA GPU are."""

import pytest
from matrix_cells import smallest
from on_gpu import FEW, HERE, needs_nvidia, verified

from selfbyoc.analysis.gpu import cuda

pytestmark = needs_nvidia


@pytest.mark.parametrize("composite", FEW)
def test_a_composite(composite):
    found = verified(composite, smallest(composite), target=cuda.serving().target)
    assert found.counts == {"passed": 1}, str(found)
    assert found.ran_by == str(cuda.serving())


def test_doubles_are_not_rounded():
    """A scale of 1.696969747543335, not 1.696970: 0.17 prints 7 digits for CUDA too."""
    (resize,) = [c for c in HERE if c.name == "resize2d"]
    (case,) = [c for c in resize.cases if c.name == "smaller"]
    found = verified(resize, case, ["borders"], cuda.serving().target)
    assert found.counts == {"passed": 1}, str(found)
