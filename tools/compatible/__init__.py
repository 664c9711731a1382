"""The parts of `tools/compatibility.py`."""
