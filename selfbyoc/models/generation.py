"""The ONNX frontend and the default build of the TVM generation at hand, as `tvm_road`."""

from ..tvm import GENERATION

if GENERATION == "relay":
    from . import _relay as tvm_road
else:
    from . import _relax as tvm_road  # type: ignore[no-redef]

__all__ = ["tvm_road"]
