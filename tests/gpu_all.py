"""`make gpu`: every case of every built-in composite as OpenCL, on every kind of input.

Too long for the suite, which runs one case of each composite (test_gpu_run.py).
"""

import pytest
from gpu import verified
from harness import CASES


@pytest.mark.parametrize(("composite", "case"), CASES)
def test_case(composite, case):
    found = verified(composite, case)
    assert found.ok, str(found)
    assert found.counts == {"passed": 1}, str(found)
