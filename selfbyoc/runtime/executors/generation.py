"""The executor of the TVM generation at hand, as `executor`."""

from ...common.generation import GENERATION

if GENERATION == "relay":
    from . import relay as executor
else:
    from . import relax as executor  # type: ignore[no-redef]

__all__ = ["executor"]
