"""Of the TVM at hand: what sees and changes attributes of a module, as `planter`."""

from ...tvm import GENERATION

if GENERATION == "relay":
    from . import _relay as planter
else:
    from . import _relax as planter  # type: ignore[no-redef]

__all__ = ["planter"]
