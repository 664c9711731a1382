"""A user's ONNX file as what mutants are cut from: fixed sizes, and each value's type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ....common.optional import extra
from ....errors import InputError
from ....models.onnx.inference import inferred
from ....models.onnx_model import load_onnx
from ....models.real_inputs import keep_constants
from ....models.shapes import Shape, give_shapes
from ...bench.inputs import inputs_of
from .mutant import Range
from .protos import LARGEST, reads, session

if TYPE_CHECKING:
    import onnx

Array = np.ndarray
Type = tuple[tuple[int, ...], int]  # the shape, and the dtype as ONNX numbers them
_SMALL = 64  # elements of an integer value that is a shape, an axis, a limit
_AT_ONCE = 64  # values that are looked at in one run
# Of sizes that the file leaves open: the first that ONNX Runtime runs at.
_SIZES = (64, 32, 48, 96, 224, 320, 16, 128, 576, 512, 8, 1)
_WEIGHTS = 1 << 22  # elements that a node of a mutant may read of constants


@dataclass(frozen=True)
class Source:
    """A file's model, with the types of its values and what the small integers among them are."""

    name: str
    model: onnx.ModelProto
    types: Mapping[str, Type]
    values: Mapping[str, Array]
    ranges: Mapping[str, Range]

    @cached_property
    def constants(self) -> dict[str, onnx.TensorProto]:
        """The initializers by name."""
        return {t.name: t for t in self.model.graph.initializer}

    @cached_property
    def fixed(self) -> frozenset[str]:
        """The values that depend on no input."""
        found = set(self.constants)
        for node in self.model.graph.node:
            if not node.op_type.startswith("Random") and found.issuperset(reads(node)):
                found.update(node.output)
        return frozenset(found)

    @cached_property
    def producers(self) -> dict[str, int]:
        """Value -> the node that computes it."""
        return {name: n for n, node in enumerate(self.model.graph.node) for name in node.output}

    @cached_property
    def readers(self) -> dict[str, list[int]]:
        """Value -> the nodes that read it."""
        found: dict[str, list[int]] = {}
        for n, node in enumerate(self.model.graph.node):
            for name in reads(node):
                found.setdefault(name, []).append(n)
        return found

    @cached_property
    def usable(self) -> frozenset[int]:
        """The nodes that a mutant may hold: they compute something, and all types are known."""
        return frozenset(n for n, node in enumerate(self.model.graph.node) if self._is_usable(node))

    def _is_usable(self, node: onnx.NodeProto) -> bool:
        if all(name in self.fixed for name in node.output):
            return False
        read = [name for name in reads(node) if name not in self.fixed]
        weights = [self.constants[name] for name in reads(node) if name in self.constants]
        if sum(np.prod(t.dims, dtype=float) for t in weights) > _WEIGHTS:
            return False
        return bool(read) and any(name in self.types for name in node.output) and all(
            name in self.types and np.prod(self.types[name][0], dtype=float) <= 8 * LARGEST
            for name in read
        )  # fmt: skip


def read(path: Path, shapes: Mapping[str, Shape] | None = None) -> Source:
    """A file, with these shapes for those of its inputs that are named. Raises InputError where
    there is no model, or nothing to cut.
    """
    model = load_onnx(path)
    keep_constants(model, ())
    model = give_shapes(model, shapes or {}, path.name)  # and each open size has a name
    opened = [d for v in model.graph.input for d in v.type.tensor_type.shape.dim if d.dim_param]
    source = None
    for size in _SIZES if opened else _SIZES[:1]:
        fixed = _at_size(model, size)
        random = inputs_of(fixed)
        ones = {name: np.ones_like(array) for name, array in random.items()}
        source = _looked_at(path.name, fixed, random) or _looked_at(path.name, fixed, ones)
        if source is not None:
            break
    if source is None:  # ONNX Runtime does not run it: what follows by ONNX's rules is left
        fixed = _at_size(model, _SIZES[0])
        source = Source(path.name, fixed, _inferred(fixed), {}, {})
    if not source.usable:
        raise InputError(f"{path} has no node that a mutant could be made of")
    return source


def _at_size(model: onnx.ModelProto, size: int) -> onnx.ModelProto:
    """A copy: one image, of three channels, of so many rows and columns; or one text so long."""
    copy = type(model)()
    copy.CopyFrom(model)
    shapes = [value.type.tensor_type.shape.dim for value in copy.graph.input]
    batches = {dims[0].dim_param for dims in shapes if len(dims) > 1} - {""}
    for dims in shapes:
        for axis, dim in enumerate(dims):
            if dim.HasField("dim_value"):
                continue
            is_one = dim.dim_param in batches or (axis == 0 and len(dims) > 1)
            channels = axis == 1 and len(dims) == 4
            dim.dim_value = 1 if is_one else 3 if channels else size
    for value in copy.graph.output:
        value.ClearField("type")
    del copy.graph.value_info[:]
    return copy


def _inferred(model: onnx.ModelProto) -> dict[str, Type]:
    """The types of all values that ONNX's rules know."""
    try:
        done = inferred(model, data_prop=True)
    except (InputError, RuntimeError, ValueError):  # it contradicts itself, or has 2 GB
        done = model
    graph = done.graph
    found = {}
    for value in (*graph.input, *graph.value_info, *graph.output):
        tensor = value.type.tensor_type
        is_known = tensor.elem_type and tensor.HasField("shape")
        dims = tensor.shape.dim
        if is_known and all(d.HasField("dim_value") for d in dims):
            found[value.name] = (tuple(d.dim_value for d in dims), tensor.elem_type)
    return found


def _looked_at(name: str, model: onnx.ModelProto, given: Mapping[str, Array]) -> Source | None:
    """With what ONNX Runtime finds in one run; None where it does not run the model."""
    types = _inferred(model)
    made = {each for node in model.graph.node for each in node.output if each}
    asked = [each for each in sorted(made) if each not in types or _is_small(types[each])]
    own = [value.name for value in model.graph.output][:1]
    values, ranges = {}, {value: _range(array) for value, array in given.items()}
    try:
        for value, array in _run(model, [*own, *(a for a in asked if a not in own)], given):
            number = extra("onnx").helper.np_dtype_to_tensor_dtype(array.dtype)
            types[value], ranges[value] = (array.shape, number), _range(array)
            if array.dtype.kind in "iub" and array.size <= _SMALL:
                values[value] = array
    except Exception:  # its own classes, one for each reason: other sizes are tried
        return None
    known = {value: found for value, found in ranges.items() if found is not None}
    return Source(name, model, types, values, known)


def _range(array: Array) -> Range | None:
    """Of integers the least and the largest; of a mask of ones zeros, too."""
    if array.dtype.kind not in "iu" or not array.size:
        return None
    least, largest = int(array.min()), int(array.max())
    return (0, 1) if least == largest == 1 else (least, largest)


def _is_small(known: Type) -> bool:
    shape, dtype = known
    return np.prod(shape, dtype=float) <= _SMALL and dtype not in (1, 10, 11, 16)  # no floats


def _run(
    model: onnx.ModelProto, names: Sequence[str], given: Mapping[str, Array]
) -> Iterator[tuple[str, Array]]:
    copy = type(model)()
    copy.CopyFrom(model)
    del copy.graph.output[:]
    for name in names:
        copy.graph.output.add(name=name)
    run = session(copy.SerializeToString())
    for first in range(0, len(names), _AT_ONCE):
        some = names[first : first + _AT_ONCE]
        found = zip(some, run.run(some, dict(given)), strict=True)
        yield from ((name, array) for name, array in found if isinstance(array, np.ndarray))
