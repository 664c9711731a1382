"""The codegen hook of the TVM generation at hand: `hook.register()`, `hook.read`,
`hook.composites`.
"""

from ..tvm import GENERATION

if GENERATION == "relay":
    from . import _relay as hook
else:
    from . import _relax as hook  # type: ignore[no-redef]

__all__ = ["hook"]
