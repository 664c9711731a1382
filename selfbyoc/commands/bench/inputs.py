"""Seeded inputs of an ONNX model: numbers near one, and integers that mean something."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ...common.optional import extra
from ...errors import OutOfMemory
from ...models.real_inputs import real_inputs

if TYPE_CHECKING:
    import onnx

LARGEST_ID = 1000  # ids stay within the first rows of a table

# Ops that hand ids on as they are. The first input of each is what it hands on.
_HANDING = {"Cast", "Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"}


def inputs_of(model: onnx.ModelProto, seed: int = 1) -> dict[str, np.ndarray]:
    """Seeded inputs of a model.

    Floats are normal. An integer that picks rows of a table stays within the table, bytes take all
    values, and any other integer is one: a mask of ones hides nothing.
    """
    onnx, rng, found = extra("onnx"), np.random.default_rng(seed), {}
    rows = dict(_rows(model.graph))
    for value in real_inputs(model):
        tensor = value.type.tensor_type
        shape = [d.dim_value for d in tensor.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        found[value.name] = made_up(rng, shape, np.dtype(dtype), rows.get(value.name))
    return found


def made_up(
    rng: np.random.Generator, shape: list[int], dtype: np.dtype, rows: int | None
) -> np.ndarray:
    """Values of one input; `rows` of the table that they pick from, if they do. Raises OutOfMemory
    for more than this machine has.
    """
    if math.prod(shape) * max(8, dtype.itemsize) > _memory():  # they are made in doubles
        text = f"{dtype}{list(shape)} is more than this machine's memory"
        raise OutOfMemory(f"an input of {text}")
    if rows is not None:
        values = rng.integers(0, min(rows, LARGEST_ID), shape)
    elif dtype in (np.int8, np.uint8):
        limits = np.iinfo(dtype)
        values = rng.integers(limits.min, limits.max + 1, shape)
    elif dtype.kind in "iub":
        return np.ones(shape, dtype)
    else:
        return np.asarray(rng.standard_normal(shape), dtype)
    return np.asarray(values, dtype)


def _memory() -> float:
    """Bytes of it; without end where the system does not say."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return math.inf


def _rows(graph: onnx.GraphProto) -> Iterator[tuple[str, int]]:
    """Input -> rows of the smallest table that it picks from."""
    sizes = _sizes(graph)
    least: dict[str, int] = {}
    for node in reversed(graph.node):  # from the tables back to the inputs
        if node.op_type in _HANDING and node.output[0] in least:
            name, count = node.input[0], least[node.output[0]]
        elif node.op_type in ("Gather", "GatherElements"):
            name, count = node.input[1], _picked(node, sizes)
        else:
            continue
        least[name] = min(count, least.get(name, count))
    yield from least.items()


def _picked(node: onnx.NodeProto, sizes: dict[str, tuple[int, ...]]) -> int:
    """How many rows there are to pick from; one where that is not known."""
    axis = next((a.i for a in node.attribute if a.name == "axis"), 0)
    table = sizes.get(node.input[0], ())
    return table[axis] if -len(table) <= axis < len(table) else 1


def _sizes(graph: onnx.GraphProto) -> dict[str, tuple[int, ...]]:
    """The shapes that the file tells: of weights, constants, inputs and what was inferred."""
    found = {t.name: tuple(t.dims) for t in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            found[node.output[0]] = tuple(node.attribute[0].t.dims)
    for value in (*graph.input, *graph.value_info):
        dims = value.type.tensor_type.shape.dim
        found.setdefault(value.name, tuple(d.dim_value or 1 for d in dims))
    return found
