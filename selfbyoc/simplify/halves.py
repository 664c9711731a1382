"""Halves are storage: ops of float16 and bfloat16 compute in float32, and round where a model casts
and where it returns. CPUs have few instructions of halves, if any; each op rounded for itself is
no nearer to what the model means. ONNX Runtime does the same.

Weights of dense layers and of convolutions stay halves in memory, and become floats in registers.
What CPUs do have is a product of bfloat16 that is summed in float32: a product that a model has in
bfloat16 says so at its weight (`half_weight`), or at its right side where both are computed
(`half_factor`), and its kernel takes that instruction or not.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from importlib import import_module

import numpy as np

from ..graph import HALVES
from ..ir.generation import has_branches, rewritten
from ..ir.rewriting import Editor, Made, as_it_was, dtype
from ..ops.half_weights import CONVOLUTIONS, WIDENS, reads_halves
from ..ops.winograd import WINDOWS, is_allowed
from ..tvm.types import Expr, IRModule
from .embeddings import table_to_hold
from .weights import of_constant, out_dtype, weight_by_units

MULTIPLIED = "bfloat16"  # by instructions of some CPUs, with sums in float32
LEAST = 1024  # elements of a weight that stays: of less there is nothing to save
# What knows halves by itself: calls of functions, of PrimFuncs too, and what reads levels.
_AS_THEY_ARE = (
    "call_", "invoke_", "memory.", "vm.", "builtin.", "selfbyoc.dequantize_groups",
    "selfbyoc.half_weight", "selfbyoc.half_factor",
)  # fmt: skip


def with_floats(mod: IRModule) -> IRModule:
    """The typed module, computing in float32; itself where it has no halves, or branches."""
    if has_branches(mod) or not _has_halves(mod):
        return mod
    weights = _of_convolutions(mod)
    return rewritten(mod, partial(_of_floats, weights=weights), keeps_types=True)


def with_half_weights(mod: IRModule, half: str) -> IRModule:
    """The prepared module; constant weights of float32 of its dense layers and convolutions are
    float16 or bfloat16, and its tables of embeddings, but for those with a number beyond it, and of
    windows that Winograd may transform: what is rounded of these is their transform, once.
    """

    def of_halves(made: Made, to: Editor) -> Expr | None:
        if (found := _rows_of_halves(made, to, half)) is not None:
            return found
        is_conv = _is_conv(made)
        weight = to.array(made.args[1]) if is_conv else weight_by_units(made, to)
        if weight is None or (is_conv and _is_winograds(made, weight)):
            return None
        held = _as_halves(weight, half)
        if held is None or len(to.shape(made.args[0]) or ()) < 2:
            return None
        floats = _floats_of(held, to)
        if is_conv:
            return to.again(made, [made.args[0], floats, *made.args[2:]])
        return to.emit("dense", made.args[0], floats, out_dtype=out_dtype(made))

    return rewritten(mod, of_halves)


def _rows_of_halves(made: Made, to: Editor, half: str) -> Expr | None:
    """The look-up of rows of halves."""
    table, _ = table_to_hold(made, to)
    held = None if table is None else _as_halves(table, half)
    return None if held is None else to.emit("embedding", _floats_of(held, to), made.args[1])


def _is_winograds(made: Made, weight: np.ndarray) -> bool:
    """Whether a convolution is one that schedules/kernels/winograd/ may take."""
    window, attrs = weight.shape[2:], made.attrs
    fits = made.kind == "conv2d" and window in WINDOWS and is_allowed()
    return fits and attrs["groups"] == 1 and tuple(attrs["strides"]) == (1, 1)


def _as_halves(weight: np.ndarray, half: str) -> np.ndarray | None:
    """Floats rounded, where none is too large and there is something to save."""
    if weight.dtype != np.float32:
        return None
    dtype = getattr(import_module("ml_dtypes"), half) if half == MULTIPLIED else np.dtype(half)
    with np.errstate(over="ignore"):
        found: np.ndarray = weight.astype(dtype)
    fits = np.isinf(found.astype(np.float32)).sum() == np.isinf(weight).sum()
    return found if fits and stays(found) else None


def _has_halves(mod: IRModule) -> bool:
    found = []

    def note(made: Made, to: Editor) -> None:
        found.append(any(_is_half(to, value) for value in (made.call, *made.given)))

    rewritten(mod, note)
    return any(found)


def _of_convolutions(mod: IRModule) -> set[Expr]:
    """The constants of halves that convolutions read as floats."""
    found = set()

    def note(made: Made, to: Editor) -> None:
        wide = to.made(made.args[1]) if _is_conv(made) else None
        if wide is not None and wide.kind in WIDENS and to.array(wide.args[0]) is not None:
            found.add(wide.args[0])

    rewritten(mod, note)
    return found


def _is_conv(made: Made) -> bool:
    """Whether a kernel may read its weight as halves."""
    return made.kind in CONVOLUTIONS and bool(made.attrs) and reads_halves(made.kind, made.attrs)


def _of_floats(made: Made, to: Editor, weights: Collection[Expr]) -> Expr | None:
    """A call of floats instead of halves; `weights` are those of convolutions."""
    if not made.name or made.name.startswith(_AS_THEY_ARE):
        pairs = list(zip(made.given, made.args, strict=True))
        args = [as_it_was(to, *each) for each in pairs]
        same = all(new is old for new, old in zip(args, made.args, strict=True))
        return None if same else to.again(made, args)
    # What makes halves of floats rounds them, and a weight is a kernel's, if one takes it.
    if not any(_is_half(to, arg) for arg in made.given) or _is_weight(made, to, weights):
        return None
    if made.kind == "cast":
        value, target = _float(made.args[0], to), str(made.raw["dtype"])
        return value if target in (*HALVES, "float32") else to.emit("cast", value, dtype=target)
    weight = weight_by_units(made, to)
    if weight is not None and stays(weight):
        held = _floats_of(weight, to)
        return to.emit("dense", _float(made.args[0], to), held, out_dtype=None)
    names = ("dtype", "out_dtype")
    told = {name: "float32" for name in names if str(made.raw.get(name)) in HALVES}
    args = [_float(arg, to) for arg in made.args]
    if _is_of_computed_sides(made, to):
        args[1] = to.emit("half_factor", args[1])
    kernel = to.array(made.args[1]) if _is_conv(made) else None
    if kernel is not None and stays(kernel):
        args[1] = _floats_of(kernel, to)
    return to.again(made, args, **told)


def _is_of_computed_sides(made: Made, to: Editor) -> bool:
    """Whether a product is one of batches, in the dtype that CPUs multiply."""
    if made.kind not in ("matmul", "batch_matmul"):
        return False
    of_batches = all(len(to.shape(side) or ()) > 2 for side in made.args)
    computed = of_batches and all(to.array(side) is None for side in made.args)
    return computed and all(to.dtypes(side) == [MULTIPLIED] for side in made.given)


def _floats_of(weight: np.ndarray, to: Editor) -> Expr:
    """A weight of a product of halves as its kernel reads it."""
    if str(weight.dtype) == MULTIPLIED:
        return to.emit("half_weight", to.constant(weight))
    return to.emit("cast", to.constant(weight), dtype="float32")


def _is_weight(made: Made, to: Editor, weights: Collection[Expr]) -> bool:
    """Whether a product reads it as it is: a constant cast to floats, or transposed."""
    array = to.array(made.args[0])
    if array is None or not stays(array) or (array.ndim == 4 and made.args[0] not in weights):
        return False
    return (made.kind == "transpose" and array.ndim == 2) or is_half_weight(made, to)


def is_half_weight(made: Made, to: Editor) -> bool:
    """Whether a call makes floats of a weight, which its kernel does."""
    if made.kind != "half_weight" and (made.kind != "cast" or str(made.raw["dtype"]) != "float32"):
        return False
    array = to.array(made.args[0])
    return array is not None and stays(array)


def _float(arg: Expr, to: Editor) -> Expr:
    """A value as floats, where it is one of halves yet."""
    if not _is_half(to, arg):
        return arg
    fields = to.fields(arg)
    if fields is not None:
        return to.joined([_float(field, to) for field in fields])
    array, is_turned = of_constant(arg, to)
    if array is not None:
        floats = array.astype(np.float32)
        return to.constant(np.ascontiguousarray(floats.T) if is_turned else floats)
    if dtype(to, arg):
        return to.emit("cast", arg, dtype="float32")
    return to.joined([_float(to.item(arg, n), to) for n in range(len(to.dtypes(arg)))])


def stays(weight: np.ndarray) -> bool:
    """Whether a constant of halves is stored as it is: a matrix, or windows of channels."""
    return str(weight.dtype) in HALVES and weight.ndim in (2, 4) and weight.size >= LEAST


def _is_half(to: Editor, x: Expr) -> bool:
    """Whether any tensor of a value is of halves."""
    return any(name in HALVES for name in to.dtypes(x))
