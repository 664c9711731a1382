"""TVM's own build of a composite's ops, of the generation at hand, as `default_road`."""

from ...tvm import GENERATION

if GENERATION == "relay":
    from . import relay as default_road
else:
    from . import relax as default_road  # type: ignore[no-redef]

__all__ = ["default_road"]
