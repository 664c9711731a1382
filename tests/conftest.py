"""Fixtures of the whole suite."""

import os
import sys
from pathlib import Path

import pytest

from selfbyoc._tvm import GENERATION

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # tests/harness.py, under pytest's importlib mode

# First for processes that tests start, unless they choose a path of their own.
os.environ["PYTHONPATH"] = str(HERE / "no_torch")

# Every test compiles what it tests; those of the cache choose a folder of their own.
os.environ["SELFBYOC_CACHE"] = "off"

# What exists on one generation only has a folder of its own; neither TVM can import the other's
# tests.
collect_ignore_glob = ["relax/*"] if GENERATION == "relay" else ["relay/*"]

# What `make test` leaves out, by measurement and in one place.
SLOW = {line for line in (HERE / "slow.txt").read_text().splitlines() if line[:1] not in ("", "#")}


@pytest.hookimpl(tryfirst=True)  # before -m looks at the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what tests/slow.txt names, a test or one of its cases."""
    for item in items:
        name = item.nodeid.removeprefix("tests/")
        if name in SLOW or name.partition("[")[0] in SLOW:
            item.add_marker("slow")
