"""Fixtures of the whole suite."""

import os
import sys
from pathlib import Path

from selfbyoc._tvm import GENERATION

sys.path.insert(0, str(Path(__file__).parent))  # tests/harness.py, under pytest's importlib mode

# First for processes that tests start, unless they choose a path of their own.
os.environ["PYTHONPATH"] = str(Path(__file__).parent / "no_torch")

# Every test compiles what it tests; those of the cache choose a folder of their own.
os.environ["SELFBYOC_CACHE"] = "off"

# What exists on one generation only has a folder of its own; neither TVM can import the other's
# tests.
collect_ignore_glob = ["relax/*"] if GENERATION == "relay" else ["relay/*"]
