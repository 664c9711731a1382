"""Forms of ops whose elements come from places that are counted here, or computed: the places of
maxima, deformed convolutions, caches that are written to, counts of n-grams.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from .claims import check_room
from .graph import Graph, NodeAttrs, attributes
from .steps import Steps

if TYPE_CHECKING:
    import onnx


def count_of(image: Sequence[int], given: NodeAttrs, sizes: Sequence[int]) -> list[int]:
    """How many windows there are along each axis."""
    ones, counts = [1] * len(image), []
    strides, apart = given.get("strides", ones), given.get("dilations", ones)
    pads = given.get("pads", [0] * 2 * len(ones))
    for n, extent in enumerate(image):
        room = extent + pads[n] + pads[n + len(ones)] - apart[n] * (sizes[n] - 1) - 1
        count = room // strides[n] + 1
        if given.get("ceil_mode", 0):
            count = -(-room // strides[n]) + 1
            count -= (count - 1) * strides[n] >= extent + pads[n]
        counts.append(count)
    return counts


def windows_of(
    image: Sequence[int], given: NodeAttrs, sizes: Sequence[int]
) -> tuple[list[np.ndarray], list[int]]:
    """Of each axis the places that windows read: windows x elements; and how many windows."""
    ones, counts = [1] * len(image), count_of(image, given, sizes)
    strides, apart = given.get("strides", ones), given.get("dilations", ones)
    pads, found = given.get("pads", [0] * 2 * len(ones)), []
    for n, count in enumerate(counts):
        begin = strides[n] * np.arange(count) - pads[n]
        found.append(begin[:, None] + apart[n] * np.arange(sizes[n]))
    return found, counts


def places_of_maxima(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """A MaxPool whose second result is used."""
    used = len(node.output) > 1 and node.output[1] in graph.read
    shape, dtype, given = graph.shape(node.input[0]), graph.dtype(node.input[0]), attributes(node)
    if not used or shape is None or dtype is None or given.get("auto_pad", b"NOTSET") != b"NOTSET":
        return None
    image, sizes = shape[2:], given["kernel_shape"]
    check_room(node, *count_of(image, given, sizes), *sizes)
    axes, counts = windows_of(image, given, sizes)
    parts = np.meshgrid(*(each.reshape(-1) for each in axes), indexing="ij")
    spread = [d for pair in zip(counts, sizes, strict=True) for d in pair]
    order = [*range(0, len(spread), 2), *range(1, len(spread), 2)]
    at = [p.reshape(spread).transpose(order).reshape(math.prod(counts), -1) for p in parts]
    inside = np.all([(p >= 0) & (p < e) for p, e in zip(at, image, strict=True)], axis=0)
    clipped = [np.clip(p, 0, e - 1) for p, e in zip(at, image, strict=True)]
    flat = np.ravel_multi_index(clipped, image)
    told = np.ravel_multi_index(clipped, image, order="F" if given.get("storage_order", 0) else "C")
    steps, pixels = Steps(graph, node), math.prod(image)
    least = np.asarray(-np.inf if dtype.kind == "f" else np.iinfo(dtype).min, dtype)
    rows = steps("Reshape", node.input[0], [*shape[:2], pixels])
    read = steps("Where", inside, steps("Gather", rows, flat, axis=2), least)
    best = steps("ArgMax", read, axis=3, keepdims=0)
    first = np.arange(len(flat)) * flat.shape[1]
    place = steps("Gather", steps.constant(told.reshape(-1)), steps("Add", best, first))
    base = pixels * np.arange(math.prod(shape[:2])).reshape(*shape[:2], 1)
    whole = [*shape[:2], *counts]
    values = steps("Reshape", steps.over("ReduceMax", read, [3], keepdims=0), whole)
    return steps.instead(values, steps("Reshape", steps("Add", place, base), whole))


def _deformed(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """A DeformConv of images: pixels between pixels, in rows, times the weights."""
    shape, weights, offsets = (graph.shape(name) for name in node.input[:3])
    dtype, given = graph.dtype(node.input[0]), attributes(node)
    if shape is None or weights is None or offsets is None or dtype is None or len(shape) != 4:
        return None
    (n, c, *image), filters = shape, weights[0]
    kernel, out = weights[2:], offsets[2:]
    groups, parts = given.get("group", 1), given.get("offset_group", 1)
    check_room(node, 2, *kernel, *out)
    axes, _ = windows_of(image, given, kernel)
    steps, count, pixels = Steps(graph, node), math.prod(kernel), math.prod(out)
    moved = steps("Reshape", node.input[2], [n, parts, count, 2, pixels])
    at = []
    for axis in (0, 1):
        places = axes[axis].T.astype(dtype)  # kernel x out
        grid = np.broadcast_to(
            places[:, None, :, None] if axis == 0 else places[None, :, None, :], (*kernel, *out)
        )
        offset = steps("Gather", moved, np.int64(axis), axis=3)
        at.append(steps("Add", offset, np.ascontiguousarray(grid).reshape(count, pixels)))
    data = steps("Reshape", node.input[0], [n, parts, c // parts, math.prod(image)])
    taken = _between(steps, data, at, image, (n, parts, c // parts, count * pixels), dtype)
    if len(node.input) > 4 and node.input[4]:
        factor = steps("Reshape", node.input[4], [n, parts, 1, count * pixels])
        taken = steps("Mul", taken, factor)
    columns = steps("Reshape", taken, [n, groups, c // groups * count, pixels])
    weight = steps("Reshape", node.input[1], [groups, filters // groups, c // groups * count])
    found = steps("Reshape", steps("MatMul", weight, columns), [n, filters, *out])
    if len(node.input) > 3 and node.input[3]:
        found = steps("Add", found, steps("Reshape", node.input[3], [-1, 1, 1]))
    return steps.instead(found)


def _between(
    steps: Steps,
    data: str,
    at: Sequence[str],
    image: Sequence[int],
    shape: Sequence[int],
    dtype: np.dtype,
) -> str:
    """Pixels at places that are no whole numbers, of the four around each; outside there is 0."""
    n, parts, _, count = shape
    one, total = np.ones((), dtype), ""
    low = [steps("Floor", each) for each in at]
    for corner in ((0, 0), (0, 1), (1, 0), (1, 1)):
        weight, place = "", ""
        for axis, far in enumerate(corner):
            spot = steps("Add", low[axis], one) if far else low[axis]
            near = steps("Sub", one, steps("Abs", steps("Sub", at[axis], spot)))
            last = np.asarray(image[axis] - 1, dtype)
            kept = steps("Max", steps("Min", spot, last), np.zeros((), dtype))
            near = steps("Mul", near, steps.cast(steps("Equal", kept, spot), dtype))
            index = steps.cast(kept, np.int64)
            weight = steps("Mul", weight, near) if weight else near
            place = steps("Add", steps("Mul", place, image[1]), index) if place else index
        flat = steps("Expand", steps("Reshape", place, [n, parts, 1, count]), list(shape))
        read = steps("GatherElements", data, flat, axis=3)
        read = steps("Mul", read, steps("Reshape", weight, [n, parts, 1, count]))
        total = steps("Add", total, read) if total else read
    return total


def _written(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """A TensorScatter: of each place in the cache, what is written there, or what was."""
    shape, update, given = graph.shape(node.input[0]), graph.shape(node.input[1]), attributes(node)
    if shape is None or update is None:
        return None
    steps, axis = Steps(graph, node), given.get("axis", -2) % len(shape)
    size, count = shape[axis], update[axis]
    column = [-1, *[1] * (len(shape) - 1)]
    begin = steps.constant(np.zeros(column[1:] and [1, *column[1:]], np.int64))
    if len(node.input) > 2 and node.input[2]:
        begin = steps("Reshape", steps.cast(node.input[2], np.int64), column)
    places = np.arange(size).reshape([size if n == axis else 1 for n in range(len(shape))])
    away = steps("Sub", steps.constant(places), begin)
    if given.get("mode", b"linear") == b"circular":
        away = steps("Mod", away, size)
    kept = steps("Max", steps("Min", away, count - 1), 0)
    whole = steps("Expand", kept, list(shape))
    new = steps("GatherElements", node.input[1], whole, axis=axis)
    return steps.instead(steps("Where", steps("Equal", kept, away), new, node.input[0]))


def _counted_grams(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """A TfIdfVectorizer of numbers: each n-gram compared with all that a text has."""
    shape, given = graph.shape(node.input[0]), attributes(node)
    pool, dtype = given.get("pool_int64s"), graph.dtype(node.input[0])
    if shape is None or pool is None or dtype is None or len(shape) > 2:
        return None
    steps, length, found = Steps(graph, node), shape[-1], []
    check_room(node, max(given["ngram_indexes"], default=0) + 1, len(pool))
    begins, columns = [*given["ngram_counts"], len(pool)], given["ngram_indexes"]
    text = steps("Reshape", steps.cast(node.input[0], np.int64), [-1, length])
    taken = 0
    for n, (begin, end) in enumerate(pairwise(begins), start=1):
        grams = np.asarray(pool[begin:end], np.int64).reshape(-1, n)
        own, taken = columns[taken : taken + len(grams)], taken + len(grams)
        places = _places_of_grams(n, length, given["max_skip_count"])
        if not given["min_gram_length"] <= n <= given["max_gram_length"] or not len(places):
            continue
        if len(grams):
            found.append((own, _count(steps, text, places, grams)))
    width = max(columns) + 1
    total = steps("Mul", steps.cast(steps("Slice", text, [0], [1], [1]), np.float32), np.float32(0))
    total = steps("Mul", total, np.zeros((1, width), np.float32))
    for own, counts in found:
        target = np.zeros((len(own), width), np.float32)
        target[np.arange(len(own)), own] = 1
        total = steps("Add", total, steps("MatMul", counts, target))
    if given["mode"] != b"TF":
        total = _weighted(steps, total, given, width)
    return steps.instead(steps("Reshape", total, [*shape[:-1], width]))


def _places_of_grams(n: int, length: int, most: int) -> np.ndarray:
    """Which places of a text n-grams take, with up to so many left out between two."""
    found = [
        begin + (skip + 1) * np.arange(n)
        for skip in range(min(most + 1, length) if n > 1 else 1)
        for begin in range(length - (n - 1) * (skip + 1))
    ]
    return np.asarray(found, np.int64).reshape(-1, n)


def _count(steps: Steps, text: str, places: np.ndarray, grams: np.ndarray) -> str:
    read = steps.over("Unsqueeze", steps("Gather", text, places, axis=1), [2])
    same = steps.cast(steps("Equal", read, grams), np.float32)
    whole = steps.over("ReduceMin", same, [3], keepdims=0)  # texts x places x grams
    return steps.over("ReduceSum", whole, [1], keepdims=0)


def _weighted(steps: Steps, total: str, given: NodeAttrs, width: int) -> str:
    """Weights are in the order of the results, as ONNX Runtime and onnx's reference have them."""
    if given["mode"] == b"IDF":
        total = steps("Min", total, np.float32(1))
    weights = np.asarray(given.get("weights", np.ones(width)), np.float32)
    return steps("Mul", total, weights[:width])


FORMS = {
    "DeformConv": _deformed, "TensorScatter": _written,
    "TfIdfVectorizer": _counted_grams,
}  # fmt: skip
