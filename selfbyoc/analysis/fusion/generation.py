"""TVM's FuseOps of the generation at hand, as `road`."""

from ...tvm import GENERATION

if GENERATION == "relay":
    from . import _relay as road
else:
    from . import _relax as road  # type: ignore[no-redef]

__all__ = ["road"]
