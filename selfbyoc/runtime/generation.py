"""Building and running on the TVM generation at hand, as `runtime`."""

from ..tvm import GENERATION

if GENERATION == "relay":
    from . import relay as runtime
else:
    from . import relax as runtime  # type: ignore[no-redef]

__all__ = ["runtime"]
