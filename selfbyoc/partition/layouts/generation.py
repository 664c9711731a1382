"""What rewrites the IR of the TVM generation at hand, as `ir`."""

from ...tvm import GENERATION

if GENERATION == "relay":
    from . import relay as ir
else:
    from . import relax as ir  # type: ignore[no-redef]

__all__ = ["ir"]
