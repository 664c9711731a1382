"""Fixtures of the whole suite."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # tests/harness.py, under pytest's importlib mode
