"""The reader of the TVM generation at hand, as `ir`, and what writes its IR, as `writer`."""

from .._tvm import GENERATION

if GENERATION == "relay":
    from . import _relay as ir
    from . import _relay_emit as writer
else:
    from . import _relax as ir  # type: ignore[no-redef]
    from . import _relax_emit as writer  # type: ignore[no-redef]

__all__ = ["ir", "writer"]
