"""The partitioner of the TVM generation at hand, as `ir`, the way back, as `inline`, what replaces
constants, as `constants`, and the functions beside main, as `steps`.
"""

from ..tvm import GENERATION

if GENERATION == "relay":
    from . import relay as ir
    from .relay import constants, steps
    from .relay import unfuse as inline
else:
    from . import relax as ir  # type: ignore[no-redef]
    from .relax import constants, steps  # type: ignore[no-redef]
    from .relax import unfuse as inline  # type: ignore[no-redef]

__all__ = ["constants", "inline", "ir", "steps"]
