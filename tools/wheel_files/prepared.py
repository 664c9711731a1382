"""A file as it is tried: with fixed sizes, and with inputs that mean something."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np

from selfbyoc.commands.bench.inputs import inputs_of
from selfbyoc.common.optional import extra
from selfbyoc.models.onnx.graph import nodes
from selfbyoc.models.onnx_model import load_onnx
from selfbyoc.models.real_inputs import keep_constants, real_inputs
from selfbyoc.models.shapes import check_known, fix_shapes, spelled

from .wheel import PRINTED, File, Normal, Value, Wheel, fetched

# Of these one step more or less is no error, and how far the outputs are off nobody knows.
QUANTISING = ("DynamicQuantizeLinear", "DynamicQuantizeLSTM", "QuantizeLinear")


def prepared(wheel: Wheel, file: File) -> Any:
    """The model with the sizes that it is tried with, for everybody."""
    path = fetched(wheel, file)
    model = load_onnx(path)
    keep_constants(model, ())
    for name, value in file.fixed.items():
        _fix(model, name, value)
    check_known([model], file.shapes)
    return fix_shapes(model, file.shapes, path.name)


def _fix(model: Any, name: str, value: Value) -> None:
    """Make a constant of an input."""
    (place,) = (n for n, v in enumerate(model.graph.input) if v.name == name)
    tensor = model.graph.input[place].type.tensor_type
    shape = [dim.dim_value for dim in tensor.shape.dim]
    dtype = np.dtype(extra("onnx").helper.tensor_dtype_to_np_dtype(tensor.elem_type))
    array = _array(value, shape, dtype, np.random.default_rng(0))
    model.graph.initializer.append(extra("onnx").numpy_helper.from_array(array, name))
    del model.graph.input[place]


def inputs_for(model: Any, file: File, seed: int) -> dict[str, np.ndarray]:
    """Seeded inputs of a prepared model."""
    rng, found = np.random.default_rng(seed), inputs_of(model, seed)
    for name, value in file.values.items():
        found[name] = _array(value, list(found[name].shape), found[name].dtype, rng)
    return found


def _array(
    value: Value, shape: list[int], dtype: np.dtype[Any], rng: np.random.Generator
) -> np.ndarray:
    if value == PRINTED:
        made = _printed(shape, rng)
    elif isinstance(value, Normal):
        made = value.deviation * rng.standard_normal(shape)
    elif isinstance(value, range):
        made = rng.choice(np.asarray(value), shape)
    elif isinstance(value, list):
        made = np.resize(value, shape)
    else:
        made = np.full(shape, value)
    return made.astype(dtype)


def _printed(shape: list[int], rng: np.random.Generator) -> np.ndarray:
    """A page of lines of words of letters, in `NCHW`; a letter is two strokes."""
    page = np.ones(shape, np.float32)
    height, width = shape[2:]
    for top in range(12, height - 24, 32):
        for left in range(12, width - 16, 14):
            if rng.random() < 0.2:
                continue  # between words
            across, down = rng.integers(2, 9, 2)
            page[:, :, top : top + 18, left + across : left + across + 2] = -1
            page[:, :, top + 2 * down : top + 2 * down + 2, left : left + 10] = -1
    return page


def facts_of(wheel: Wheel, file: File, model: Any) -> dict[str, str]:
    """What the table says of a file beside what was found."""
    opsets = {e.domain or "onnx": e.version for e in model.opset_import}
    used = Counter(node.domain or "onnx" for node in nodes(model.graph))
    told = [f"{'' if d in ('onnx', 'ai.onnx') else d} {opsets.get(d, '?')}".strip() for d in used]
    shapes = {
        v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in real_inputs(model)
    }
    size = sum((fetched(wheel, file).parent / n).stat().st_size for n in _files(file))
    return {
        "opset": ", ".join(sorted(set(told))),
        "ir": str(load_onnx(fetched(wheel, file)).ir_version),
        "nodes": str(sum(used.values())),
        "megabytes": f"{size / 1e6:.2g}" if size < 1e7 else f"{size / 1e6:.0f}",
        "shapes": "; ".join(
            f"{name} {spelled(s) or 'one'}" for name, s in _largest(shapes).items()
        ),
        "quantises": "yes" if quantises(model) else "",
    }


def quantises(model: Any) -> bool:
    """Whether it computes with steps."""
    return any(node.op_type in QUANTISING for node in nodes(model.graph))


def _files(file: File) -> list[str]:
    """Names in its folder."""
    return [each.rpartition("/")[2] for each in (file.path, *file.beside)]


def _largest(shapes: dict[str, list[int]]) -> dict[str, list[int]]:
    """The three inputs with most elements: one file has nineteen."""
    names = sorted(shapes, key=lambda name: -math.prod(shapes[name]))[:3]
    return {name: shapes[name] for name in shapes if name in names}
