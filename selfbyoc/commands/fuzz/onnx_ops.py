"""Ops of ONNX that are none of the vocabulary, as changes of a program: their types, and values of
their attributes. TVM's importers take most of them apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from .program import CONSTANT, Draft, Program
from .types import Attrs, Type, axis_of, check

Types = list[tuple[Type, ...]]
PREFIX = "onnx."
_ALPHAS = (0.01, 0.5, 1.0, 2.0)
# Op -> attributes and their values; the result is of the type of its first input.
ELEMENTWISE: dict[str, dict[str, tuple[Any, ...]]] = {
    "HardSwish": {}, "HardSigmoid": {"alpha": (0.2, 1 / 6, 0.5), "beta": (0.5, 0.0)},
    "Elu": {"alpha": _ALPHAS}, "Celu": {"alpha": _ALPHAS}, "ThresholdedRelu": {"alpha": _ALPHAS},
    "Selu": {}, "Softplus": {}, "Softsign": {},  # no Floor or Ceil: rounding decides what they give
    "LogSoftmax": {"axis": (-1, 1, 0)}, "LpNormalization": {"axis": (-1, 1), "p": (1, 2)},
    "Identity": {}, "Dropout": {},
}  # fmt: skip
_MODES = (("nearest", "asymmetric"), ("nearest", "half_pixel"), ("linear", "half_pixel"),
          ("linear", "align_corners"), ("linear", "asymmetric"))  # fmt: skip


def _floats(ins: Sequence[Type], a: Attrs) -> Type:
    shape, dtype = ins[0]
    check(dtype.startswith("float"), f"of {dtype}")
    if "axis" in a:
        axis_of(a["axis"], len(shape))
    return shape, dtype


def _image(ins: Sequence[Type], a: Attrs) -> Type:
    check(len(ins[0][0]) == 4, "no image")
    return _floats(ins, {})


def _pad(ins: Sequence[Type], a: Attrs) -> Type:
    (shape, dtype), pads = _floats(ins, a), a["pads"]
    check(len(pads) == 2 * len(shape), "pads")
    check(all(p < e for p, e in zip(pads, (*shape, *shape), strict=True)), "a long reflection")
    return tuple(e + pads[n] + pads[n + len(shape)] for n, e in enumerate(shape)), dtype


def _flatten(ins: Sequence[Type], a: Attrs) -> Type:
    (shape, dtype), axis = ins[0], a["axis"]
    check(0 <= axis <= len(shape), "an axis")
    return (math.prod(shape[:axis]), math.prod(shape[axis:])), dtype


def _resize(ins: Sequence[Type], a: Attrs) -> Type:
    (n, c, h, w), dtype = _image(ins, a)
    return (n, c, h * a["scale"], w * a["scale"]), dtype


def _global(ins: Sequence[Type], a: Attrs) -> Type:
    (n, c, _, _), dtype = _image(ins, a)
    return (n, c, 1, 1), dtype


def _slice(ins: Sequence[Type], a: Attrs) -> Type:
    (shape, dtype), axis = ins[0], axis_of(a["axis"], len(ins[0][0]))
    extent = len(range(*slice(a["start"], a["end"], a["step"]).indices(shape[axis])))
    return (*shape[:axis], extent, *shape[axis + 1 :]), dtype


def _normalized(ins: Sequence[Type], a: Attrs) -> Type:
    shape, dtype = _floats(ins, {})
    check(len(shape) >= 3 and all(t == ((shape[1],), dtype) for t in ins[1:]), "moments")
    return shape, dtype


RULES: dict[str, Callable[[Sequence[Type], Attrs], Any]] = {
    **dict.fromkeys((PREFIX + name for name in ELEMENTWISE), _floats),
    "onnx.Pad": _pad, "onnx.Flatten": _flatten, "onnx.Resize": _resize, "onnx.Slice": _slice,
    "onnx.GlobalMaxPool": _global, "onnx.InstanceNormalization": _normalized,
    "onnx.BatchNormalization": _normalized,
}  # fmt: skip


def insert(program: Program, types: Types, rng: Random) -> Program | None:
    """An op of ONNX after a value; one that changes the shape after a result."""
    values = [i for i, n in enumerate(program.nodes) if not n.is_leaf and len(types[i]) == 1]
    draft, op = Draft(program), rng.choice((*ELEMENTWISE, *_OTHERS))
    at = rng.choice(list(program.outputs) if op in _RESHAPING else values)
    shape, dtype = types[at][0]
    if op in ELEMENTWISE:
        attrs = {name: rng.choice(some) for name, some in ELEMENTWISE[op].items()}
        more: list[int] = []
    else:
        attrs = _OTHERS[op](shape, rng)
        of = 4 if op == "BatchNormalization" else 2 if op == "InstanceNormalization" else 0
        more = [draft.leaf(shape[1:2], dtype, CONSTANT) for _ in range(of)]
        if of == 4:  # a variance, for the importer that uses it in training too
            draft.change(more[3], value=0.5)
    draft.redirect(at, draft.op(PREFIX + op, at, *more, **attrs))
    return draft.done(f"{op} after {program.nodes[at].kind}")


def _pad_attrs(shape: Sequence[int], rng: Random) -> dict[str, object]:
    pads = [rng.choice((0, 0, 1, 2)) if n >= 2 or len(shape) < 3 else 0 for n in range(len(shape))]
    after = [rng.choice((p, p, 0)) for p in pads]
    mode = rng.choice(("constant", "reflect", "edge"))
    return {"pads": (*pads, *after), "mode": mode, "value": rng.choice((0.0, 0.5, -1.0))}


def _resize_attrs(shape: Sequence[int], rng: Random) -> dict[str, object]:
    mode, places = rng.choice(_MODES)
    return {"scale": 2, "mode": mode, "coordinate_transformation_mode": places}


def _slice_attrs(shape: Sequence[int], rng: Random) -> dict[str, int]:
    where = {"start": rng.choice((0, 1)), "end": rng.choice((-1, 3, 1 << 31))}
    return {"axis": rng.randrange(max(len(shape), 1)), **where, "step": rng.choice((1, 1, 2))}


_OTHERS: dict[str, Callable[[Sequence[int], Random], dict[str, Any]]] = {
    "Pad": _pad_attrs, "Resize": _resize_attrs, "Slice": _slice_attrs,
    "Flatten": lambda shape, rng: {"axis": rng.randrange(len(shape) + 1)},
    "GlobalMaxPool": lambda shape, rng: {},
    "InstanceNormalization": lambda shape, rng: {"epsilon": rng.choice((1e-5, 0.1))},
    "BatchNormalization": lambda shape, rng: {
        "epsilon": rng.choice((1e-5, 0.1)), "training_mode": 1,
    },
}  # fmt: skip
_RESHAPING = frozenset({"Pad", "Resize", "Slice", "Flatten", "GlobalMaxPool"})
EDITS = (insert, insert, insert, insert)
