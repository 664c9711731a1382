"""All that take part, ours first."""

from .contender import Built, Contender
from .pytorch import INDUCTOR, TORCH
from .runtimes import ONNXRUNTIME, OPENVINO
from .tvm_builds import DEFAULT, SELFBYOC, STACKED

CONTENDERS = (SELFBYOC, ONNXRUNTIME, OPENVINO, TORCH, INDUCTOR, STACKED, DEFAULT)

__all__ = ["CONTENDERS", "Built", "Contender"]
