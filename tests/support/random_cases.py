"""How the random tests look for cases: a short run in the suite, SELFBYOC_FUZZ=500 for longer."""

import os

import pytest

hypothesis = pytest.importorskip("hypothesis", reason="the dev extra is not installed")

EXAMPLES = int(os.environ.get("SELFBYOC_FUZZ", "0"))
RANDOM = hypothesis.settings(
    max_examples=EXAMPLES or 6,
    derandomize=not EXAMPLES,
    deadline=None,
    database=None,
    suppress_health_check=list(hypothesis.HealthCheck),
)
