"""Every built-in composite on every one of its cases: used exactly once, and right."""

import pytest
from harness import CASES, assert_close, run_case

from selfbyoc import BUILTIN


@pytest.mark.parametrize(("composite", "case"), CASES)
def test_case(composite, case):
    run = run_case(composite, case)
    assert run.counts == {composite.name: 1}
    assert_close(run)


@pytest.mark.parametrize("composite", BUILTIN, ids=lambda c: c.name)
def test_every_composite_has_cases(composite):
    assert len(composite.cases) >= 2
