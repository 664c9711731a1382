"""Of the TVM at hand: what sees and changes attributes of a module, as `planter`."""

from ...tvm import GENERATION

if GENERATION == "relay":
    from . import relay as planter
else:
    from . import relax as planter  # type: ignore[no-redef]

__all__ = ["planter"]
