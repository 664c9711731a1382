"""The workloads: seven that say what fusion is worth, a sweep of shapes, and whole models, of
floats and in levels of 8 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import blocks, networks
from .network import Network
from .quantised import variants
from .workload import Workload

if TYPE_CHECKING:
    import onnx

NAMED, SWEEP, MODELS = "named", "sweep", "models"

Build = Callable[[Network, str], str]


def _picture(shape: Sequence[int], build: Build) -> Callable[[], onnx.ModelProto]:
    def model() -> onnx.ModelProto:
        net = Network()
        return net.model(build(net, net.input("x", *shape)))

    return model


def _attention(*shape: int, keys: int = 0) -> Callable[[], onnx.ModelProto]:
    def model() -> onnx.ModelProto:
        net = Network()
        *batch, rows, width = shape
        others = (*batch, keys or rows, width)
        q, k, v = net.input("q", *shape), net.input("k", *others), net.input("v", *others)
        return net.model(net.attention(q, k, v))

    return model


def _chain(*channels: int, kernel: int = 3, stride: int = 1) -> Build:
    return lambda net, x: blocks.conv_chain(net, x, *channels, kernel=kernel, stride=stride)


def _inverted(expand: int, project: int, stride: int = 1) -> Build:
    return lambda net, x: blocks.inverted_residual(net, x, expand, project, stride)


def _separable(channels: int, stride: int = 1) -> Build:
    return lambda net, x: blocks.separable(net, x, channels, stride)


def _pointwise(inner: int, channels: int, stride: int = 1) -> Build:
    return lambda net, x: blocks.then_pointwise(net, x, inner, channels, stride)


def _inception(one: int, three: tuple[int, int], five: tuple[int, int], pooled: int) -> Build:
    return lambda net, x: blocks.inception(net, x, one, three, five, pooled)


def _mlp(inner: int) -> Build:
    return lambda net, x: net.dense(net.dense(x, inner, act="gelu"), net.shapes[x][-1])


def _norm_dense(units: int) -> Build:
    return lambda net, x: net.dense(net.layer_norm(x), units)


def _first(channels: int, kernel: int, stride: int) -> Build:
    return lambda net, x: net.conv(x, channels, kernel, stride=stride, act="relu")


def _basic(channels: int, stride: int = 1) -> Build:
    return lambda net, x: blocks.basic_residual(net, x, channels, stride)


def _bottleneck(inner: int, channels: int, stride: int = 1) -> Build:
    return lambda net, x: blocks.bottleneck(net, x, inner, channels, stride)


def _fire(squeeze: int, expand: int) -> Build:
    return lambda net, x: blocks.fire(net, x, squeeze, expand)


def _bert(heads: int, inner: int) -> Build:
    return lambda net, x: blocks.bert_layer(net, x, heads, inner)


def _vit(heads: int, inner: int) -> Build:
    return lambda net, x: blocks.vit_layer(net, x, heads, inner)


_SEVEN: tuple[tuple[str, Callable[[], Any]], ...] = (
    ("conv2d-relu-conv2d-relu 64x56x56", _picture((1, 64, 56, 56), _chain(64, 64))),
    ("inverted residual 24x56x56 e144", _picture((1, 24, 56, 56), _inverted(144, 24))),
    ("attention 12x128x64", _attention(12, 128, 64)),
    ("attention 12x512x64", _attention(12, 512, 64)),
    ("dense-gelu-dense 128x768x3072", _picture((128, 768), _mlp(3072))),
    ("layer_norm-dense 128x768", _picture((128, 768), _norm_dense(768))),
    ("inception 3a 192x28x28", _picture((1, 192, 28, 28), _inception(64, (96, 128), (16, 32), 32))),
)

# (what, shape of the input, build): "what" says whose layer it is.
_PICTURES: tuple[tuple[str, tuple[int, ...], Build], ...] = (
    # 3x3 followed by 3x3: VGG, ResNet and what SqueezeNet-like nets begin with.
    ("conv3-conv3 resnet", (1, 128, 28, 28), _chain(128, 128)),
    ("conv3-conv3 resnet", (1, 256, 14, 14), _chain(256, 256)),
    ("conv3-conv3 resnet", (1, 512, 7, 7), _chain(512, 512)),
    ("conv3-conv3 stride 2", (1, 64, 56, 56), _chain(128, 128, stride=2)),
    ("conv3-conv3 vgg", (1, 64, 112, 112), _chain(64, 64)),
    ("conv3-conv3 batch 4", (4, 64, 28, 28), _chain(64, 64)),
    ("conv3-conv3 odd", (1, 48, 35, 37), _chain(80, 72)),
    ("conv3-conv3 first", (1, 3, 112, 112), _chain(32, 32)),
    # ResNet's blocks, shortcuts included.
    ("basic block", (1, 64, 56, 56), _basic(64)),
    ("basic block stride 2", (1, 128, 28, 28), _basic(256, 2)),
    ("bottleneck", (1, 256, 56, 56), _bottleneck(64, 256)),
    ("bottleneck stride 2", (1, 512, 28, 28), _bottleneck(256, 1024, 2)),
    ("bottleneck", (1, 2048, 7, 7), _bottleneck(512, 2048)),
    ("bottleneck batch 4", (4, 512, 14, 14), _bottleneck(128, 512)),
    ("first layer resnet", (1, 3, 224, 224), _first(64, 7, 2)),
    ("first layer mobilenet", (1, 3, 224, 224), _first(32, 3, 2)),
    # 3x3 followed by 1x1, as in the paper LayerFusion.
    ("conv3-conv1", (1, 64, 56, 56), _pointwise(64, 128)),
    ("conv3-conv1", (1, 128, 28, 28), _pointwise(128, 512)),
    ("conv3-conv1 stride 2", (1, 64, 56, 56), _pointwise(128, 128, 2)),
    ("conv3-conv1 odd", (1, 24, 33, 31), _pointwise(40, 72)),
    # Depthwise 3x3 followed by 1x1: MobileNet v1.
    ("depthwise-conv1", (1, 32, 112, 112), _separable(64)),
    ("depthwise-conv1 stride 2", (1, 64, 112, 112), _separable(128, 2)),
    ("depthwise-conv1", (1, 128, 56, 56), _separable(128)),
    ("depthwise-conv1", (1, 512, 14, 14), _separable(512)),
    ("depthwise-conv1", (1, 1024, 7, 7), _separable(1024)),
    ("depthwise-conv1 batch 4", (4, 256, 28, 28), _separable(256)),
    # MobileNetV2.
    ("inverted residual", (1, 32, 28, 28), _inverted(192, 32)),
    ("inverted residual stride 2", (1, 24, 56, 56), _inverted(144, 32, 2)),
    ("inverted residual", (1, 64, 14, 14), _inverted(384, 64)),
    ("inverted residual", (1, 96, 14, 14), _inverted(576, 96)),
    ("inverted residual", (1, 160, 7, 7), _inverted(960, 160)),
    ("inverted residual batch 4", (4, 24, 28, 28), _inverted(144, 24)),
    ("inverted residual odd", (1, 20, 45, 43), _inverted(120, 20)),
    # GoogLeNet and SqueezeNet.
    ("inception 3b", (1, 256, 28, 28), _inception(128, (128, 192), (32, 96), 64)),
    ("inception 4c", (1, 512, 14, 14), _inception(128, (128, 256), (24, 64), 64)),
    ("inception 4e", (1, 528, 14, 14), _inception(256, (160, 320), (32, 128), 128)),
    ("inception 5b", (1, 832, 7, 7), _inception(384, (192, 384), (48, 128), 128)),
    ("fire", (1, 64, 55, 55), _fire(16, 64)),
    ("fire", (1, 256, 27, 27), _fire(32, 128)),
    ("fire", (1, 512, 13, 13), _fire(64, 256)),
    # Transformers: BERT, MiniLM (384 wide) and ViT (197 rows); rows are tokens.
    ("mlp bert", (16, 768), _mlp(3072)),
    ("mlp bert", (512, 768), _mlp(3072)),
    ("mlp minilm", (128, 384), _mlp(1536)),
    ("mlp vit-tiny", (197, 192), _mlp(768)),
    ("layer_norm-dense bert", (16, 768), _norm_dense(2304)),
    ("layer_norm-dense minilm", (128, 384), _norm_dense(1536)),
    ("layer_norm-dense vit", (197, 768), _norm_dense(768)),
    ("bert layer", (1, 128, 768), _bert(12, 3072)),
    ("minilm layer", (1, 16, 384), _bert(12, 1536)),
    ("minilm layer", (1, 256, 384), _bert(12, 1536)),
    ("vit-small layer", (1, 197, 384), _vit(6, 1536)),
)

_ATTENTIONS: tuple[tuple[str, tuple[int, ...]], ...] = (
    ("attention bert", (12, 16, 64)),
    ("attention bert", (12, 256, 64)),
    ("attention minilm", (12, 128, 32)),
    ("attention minilm batch 4", (48, 64, 32)),
    ("attention vit", (12, 197, 64)),
    ("attention vit-tiny", (3, 197, 64)),
)


def _sized(what: str, shape: Sequence[int]) -> str:
    return f"{what} {'x'.join(map(str, shape))}"


def suite(minilm: Path | None = None) -> tuple[Workload, ...]:
    """All workloads; `minilm` is a file of weights for that model."""
    named = [Workload(name, NAMED, model) for name, model in _SEVEN]
    pictures = [Workload(_sized(w, s), SWEEP, _picture(s, build)) for w, s, build in _PICTURES]
    attentions = [Workload(_sized(w, s), SWEEP, _attention(*s)) for w, s in _ATTENTIONS]
    whole = [
        # onnx' reference has only the newest Softmax and LRN, which these old models do not mean.
        Workload("GoogLeNet", MODELS, networks.light("inception_v1"), "onnxruntime"),
        Workload("SqueezeNet 1.1", MODELS, networks.light("squeezenet"), "onnxruntime"),
        Workload("MobileNetV2", MODELS, networks.mobilenet_v2),
        Workload("ResNet-50", MODELS, networks.light("resnet50"), "onnxruntime"),
        Workload("MiniLM-L6", MODELS, lambda: networks.minilm(minilm)),
        Workload("BERT-base", MODELS, networks.bert_base),
    ]
    in_levels = variants(whole, dynamic=("MiniLM-L6", "BERT-base"))
    return (*named, *pictures, *attentions, *whole, *in_levels)
