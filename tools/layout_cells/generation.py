"""The layout passes of the TVM at hand."""

from selfbyoc.tvm import GENERATION

if GENERATION == "relay":
    from .relay import ALONE, PASSES
else:
    from .relax import ALONE, PASSES

__all__ = ["ALONE", "PASSES"]
