"""Weights rounded to half precision, in a partitioned module: each constant that a convolution, a
product or a look-up reads holds what float16 can say of it, still as float32, so that all computes
stay as they are. The file then holds it in half the bytes (runtime/half.py).

What is multiplied without a sum is no weight: the frequencies of rotary embedding, by which models
multiply positions, would be off by a turn after some thousand tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from ..codegen.hook import hook
from ..codegen.parallel import at_once
from ..errors import InputError
from ..graph import OpCall, OpGraph, Value
from ..ir.generation import ir as reader
from ..ops.cost import MOVES, PRODUCTS
from ..printable import shown_name
from ..tvm import constant_tensor, tensor, view_of
from ..tvm.types import Expr, IRModule, NDArray
from .generation import constants, ir
from .original_weights import key_of, originals_of
from .report import report
from .source_names import names_of

LARGEST = float(np.finfo(np.float16).max)
_READERS = (*PRODUCTS, "gather_elements", "gather_nd", "take")
_PASS_ON = (*MOVES, "max")  # max: a Relay stand-in of a packed weight (partition/finish.py) has it


def rounded(mod: IRModule) -> IRModule:
    """The module with its weights rounded. Raises InputError for a weight that holds a number
    beyond float16's.
    """
    found = _weights(mod)
    called = partial(_in_source, mod)
    new = at_once([partial(_rounded, node, name, called) for node, name in found.items()])
    return constants.replaced(mod, dict(zip(found, new, strict=True)))


def _in_source(mod: IRModule, array: np.ndarray) -> str:
    """What the model's source calls a weight, packed or not: `fc.weight, `, or nothing."""
    kept = originals_of(mod)
    packed = (kept[key] for key in kept if key.endswith(key_of(array, "")))
    before = next((view_of(constant_tensor(node)) for node in packed), array)
    name = names_of(mod).of_weight(before)
    return f"{shown_name(name)}, " if name else ""


def _rounded(node: Expr, name: str, called: Callable[[np.ndarray], str]) -> NDArray:
    array = view_of(constant_tensor(node))
    wide = np.abs(array[np.isfinite(array)])
    largest = float(wide.max(initial=0.0))
    with np.errstate(over="ignore"):
        half = array.astype(np.float16)
    if np.isinf(half).sum() != np.isinf(array).sum():
        raise InputError(
            f"weights: {called(array)}{name}, float32{list(array.shape)}, holds {largest:.4g}, "
            f"and float16 ends at {LARGEST:g}"
        )
    return tensor(half.astype(np.float32))


def _weights(mod: IRModule) -> dict[Expr, str]:
    """The constants of `main` that are weights of float32, and what each is called."""
    written = reader.read_as_written(mod["main"])
    inside = {name: hook.read(func) for name, func in ir.external_functions(mod).items()}
    found = {}
    for node, values in written.values.items():
        if constants.is_constant(node) and values[0].dtype == "float32":
            name = _reader(written.graph, values[0], inside, _titles(mod))
            if name:
                found[node] = f"the weight of {name}"
    return found


def _titles(mod: IRModule) -> dict[str, str]:
    """External function -> the composite and where it is; equal ones have one symbol."""
    places: dict[str, list[str]] = {}
    for match in report(mod).matched:
        places.setdefault(match.symbol, []).append(f"{match.composite} at {match.root}")
    functions = ir.external_functions(mod).items()
    symbols = {name: str(func.attrs["global_symbol"]) for name, func in functions}
    return {name: " or ".join(places.get(at, [name])) for name, at in symbols.items()}


def _reader(
    graph: OpGraph, value: Value, inside: Mapping[str, OpGraph], titles: Mapping[str, str]
) -> str:
    """What reads a value as a weight, maybe after it was moved; nothing where nothing does."""
    for op in graph.users(value):
        name = _called(op)
        if name in inside:
            pairs = zip(op.inputs, inside[name].inputs, strict=True)
            if any(v is value and _reader(inside[name], p, {}, {}) for v, p in pairs):
                return titles[name]
        elif op.kind in _READERS and not _is_outer(op):
            return op.name
        elif op.kind in _PASS_ON and (later := _reader(graph, op.outputs[0], inside, titles)):
            return later
    return ""


def _is_outer(op: OpCall) -> bool:
    """Whether it is a product of matrices that sums nothing up."""
    if op.kind not in ("dense", "batch_matmul", "matmul"):
        return False
    return op.inputs[0].shape[-2 if op.attrs.get("transpose_a") else -1] == 1


def _called(op: OpCall) -> str:
    return next((name for node in op.sources if (name := constants.callee(node))), "")
