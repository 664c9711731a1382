"""What rewrites the IR of the TVM generation at hand, as `ir`."""

from ...tvm import GENERATION

if GENERATION == "relay":
    from . import _relay as ir
else:
    from . import _relax as ir  # type: ignore[no-redef]

__all__ = ["ir"]
