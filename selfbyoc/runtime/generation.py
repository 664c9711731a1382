"""Building and running on the TVM generation at hand, as `runtime`."""

from ..tvm import GENERATION

if GENERATION == "relay":
    from . import _relay as runtime
else:
    from . import _relax as runtime  # type: ignore[no-redef]

__all__ = ["runtime"]
