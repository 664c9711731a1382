"""All that take part, ours first; `OPEN` are those of a model with an open size."""

from .contender import Built, Contender
from .open_sizes import OPEN
from .pytorch import INDUCTOR, TORCH
from .runtimes import ONNXRUNTIME, OPENVINO
from .tvm_builds import DEFAULT, SELFBYOC, STACKED

CONTENDERS = (SELFBYOC, ONNXRUNTIME, OPENVINO, TORCH, INDUCTOR, STACKED, DEFAULT)

__all__ = ["CONTENDERS", "OPEN", "Built", "Contender"]
