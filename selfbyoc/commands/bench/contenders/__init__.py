"""All that take part, ours first; `OPEN` are those of a model with an open size."""

from .compilers import EXECUTORCH, IREE, LITERT
from .contender import Built, Contender
from .open_sizes import OPEN
from .phones import MNN, NCNN, TRACT
from .pytorch import INDUCTOR, TORCH, ZENTORCH
from .runtimes import ONNXRUNTIME, OPENVINO
from .tvm_builds import DEFAULT, SELFBYOC, STACKED

CONTENDERS = (
    SELFBYOC, ONNXRUNTIME, OPENVINO, TORCH, INDUCTOR, ZENTORCH, IREE, EXECUTORCH, LITERT, MNN, NCNN,
    TRACT, STACKED, DEFAULT,
)  # fmt: skip

__all__ = ["CONTENDERS", "OPEN", "Built", "Contender"]
