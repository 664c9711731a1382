"""The codegen hook of the TVM at hand: `hook.codegen`, `hook.read`, `hook.composites`."""

from ..tvm import GENERATION

if GENERATION == "relay":
    from . import relay as hook
else:
    from . import relax as hook  # type: ignore[no-redef]

__all__ = ["hook"]
