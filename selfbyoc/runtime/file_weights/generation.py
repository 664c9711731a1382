"""Files of the TVM generation at hand, as `files`."""

from ...tvm import GENERATION

if GENERATION == "relay":
    from . import relay as files
else:
    from . import relax as files  # type: ignore[no-redef]

__all__ = ["files"]
