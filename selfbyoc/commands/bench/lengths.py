"""`bench MODEL.onnx --lengths length=1,16,128`: a size stays open, each length is a workload."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import InputError, did_you_mean
from ...models.dim_names import symbols_of
from ...models.onnx_model import read_onnx
from ...models.real_inputs import check_initializers, keep_constants, real_inputs
from ...models.shapes import (
    Shape,
    check_known,
    fix_shapes,
    give_shapes,
    give_sizes,
    parse_shapes,
    spelled,
)
from ...models.sizes import LARGEST, Lengths
from ...tvm import GENERATION, tvm
from .measure import saved
from .own import TRUTH, check_types, copied, key_of
from .records import Row
from .workload import Workload

if TYPE_CHECKING:
    import onnx

LENGTHS = "lengths"

# What a kernel for all lengths may lose to one for this length. A short one takes microseconds, of
# which choosing the function is a part.
SHORT, LEAST_OF_SHORT, LEAST = 16, 0.90, 0.95


def length_workloads(
    path: Path, lengths: Lengths, sizes: Mapping[str, int], shapes: Sequence[str], folder: Path,
    inputs: Sequence[str] = (),
) -> list[Workload]:  # fmt: skip
    """One for each length, all of the same file in `folder`, where only this size is open.

    `sizes` and `shapes` (as `--shape` takes them) fix the others; `inputs` are initializers that
    count as inputs.
    """
    if GENERATION == "relay":
        raise InputError(
            f"lengths: TVM {tvm.__version__} (Relay) has no names for open sizes; expected "
            "apache-tvm 0.26 or newer (Relax)"
        )
    asked, name = parse_shapes(shapes), path.stem
    model = _sized(path, asked, sizes, inputs)
    symbol = _only_open(lengths.symbol, symbols_of(model), name)
    _check_largest(_fixed(model, symbol, max(lengths.values), name), symbol, lengths)
    file, key = saved(model, folder), key_of(path)
    fixed = [f"{of}={spelled(shape)}" for of, shape in asked.items()]
    fixed += [f"{of}={size}" for of, size in sizes.items()]
    return [
        Workload(
            " ".join([name, *fixed, f"{symbol}={n}"]), LENGTHS,
            partial(_fixed, model, symbol, n, name), TRUTH, key, file, n,
        )
        for n in lengths.values
    ]  # fmt: skip


def _sized(
    path: Path, shapes: Mapping[str, Shape], sizes: Mapping[str, int], inputs: Sequence[str]
) -> onnx.ModelProto:
    """The model with what is to be fixed of it."""
    model = read_onnx(path)
    check_initializers([model], inputs)
    keep_constants(model, inputs)
    check_known([model], shapes)
    model = give_shapes(model, shapes, path.stem)
    for name in sizes:
        _check_symbol("size", name, symbols_of(model), path.stem)
    model = give_sizes(model, sizes)
    check_types(model, path.stem)
    return model


def _check_symbol(option: str, name: str, known: Sequence[str], where: str) -> None:
    if not known:
        raise InputError(f"{option}: no size of {where} is open")
    if name not in known:
        near = did_you_mean(name, known)
        raise InputError(f"{option}: no open size {name!r} in {where}; open: {known}{near}")


def _only_open(name: str, known: Sequence[str], where: str) -> str:
    """The symbol that the lengths are of, after all others were fixed."""
    if not name and len(known) > 1:
        raise InputError(f"lengths: expected NAME=1,16,128, for {where} has the open sizes {known}")
    name = name or "".join(known)
    _check_symbol("lengths", name, known, where)
    for other in known:
        if other != name:
            raise InputError(f"lengths: {other} of {where} is open too: fix it, --size {other}=1")
    return name


def _fixed(model: onnx.ModelProto, symbol: str, length: int, where: str) -> onnx.ModelProto:
    """A copy for one length; InputError for an input of which not even the rank is known."""
    return fix_shapes(give_sizes(copied(model), {symbol: length}), {}, where)


def _check_largest(longest: onnx.ModelProto, symbol: str, lengths: Lengths) -> None:
    for value in real_inputs(longest):
        count = math.prod(d.dim_value for d in value.type.tensor_type.shape.dim)
        if count > LARGEST:
            raise InputError(
                f"lengths: {symbol}={max(lengths.values)} gives input {value.name} {count} "
                f"elements; expected at most {LARGEST}"
            )


def least_of(row: Row) -> float:
    """What ours for this length alone may take at least, as a share of ours for all."""
    return LEAST_OF_SHORT if row.length < SHORT else LEAST


def is_even(row: Row) -> bool:
    """Whether ours for all lengths is nearly as fast as ours for this one."""
    return row.static_ratio is not None and row.static_ratio >= least_of(row)
