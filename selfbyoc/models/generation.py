"""The ONNX frontend and the default build of the TVM generation at hand, as `tvm_road`."""

from ..tvm import GENERATION

if GENERATION == "relay":
    from . import relay as tvm_road
else:
    from . import relax as tvm_road  # type: ignore[no-redef]

__all__ = ["tvm_road"]
