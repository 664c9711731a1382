"""TVM's FuseOps of the generation at hand, as `road`."""

from ...tvm import GENERATION

if GENERATION == "relay":
    from . import relay as road
else:
    from . import relax as road  # type: ignore[no-redef]

__all__ = ["road"]
