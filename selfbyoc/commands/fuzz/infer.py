"""The types of a program's values, by rules of our own: what does not fit is not written."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ...ops.vocabulary import KINDS, complete
from ...tvm import GENERATION
from . import onnx_ops, windows
from .program import ITEM, Program
from .types import Attrs, Invalid, Type, axis_of, check

__all__ = ["Invalid", "Type", "broadcast", "infer", "result"]


def infer(program: Program) -> list[tuple[Type, ...]]:
    """For each node the types of its outputs; raises Invalid."""
    found: list[tuple[Type, ...]] = []
    for node in program.nodes:
        if node.is_leaf:
            check(all(e > 0 for e in node.shape), "an empty leaf")
            found.append(((node.shape, node.dtype),))
        elif node.kind == ITEM:
            found.append((found[node.inputs[0]][node.attrs["index"]],))
        else:
            ins = [found[i][0] for i in node.inputs]
            found.append(result(node.kind, ins, node.attrs))
    for index in program.outputs:
        check(len(found[index]) == 1, "an op with several outputs is returned whole")
    return found


def result(kind: str, ins: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    """The types of an op's outputs; raises Invalid."""
    rule = RULES.get(kind) or (KINDS[kind].types if kind in KINDS else None)
    check(rule is not None, f"no rule for {kind}")
    assert rule is not None
    known = complete(kind, attrs) if kind in KINDS else dict(attrs)
    try:
        made = rule(ins, known)
    except (IndexError, KeyError, ValueError, TypeError) as err:  # a rank that does not fit
        raise Invalid(f"{kind}: {err}") from err
    outputs = tuple(made) if isinstance(made, list) else (made,)
    check(all(e > 0 for shape, _ in outputs for e in shape), f"{kind} is empty")
    return outputs


def broadcast(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that all of them broadcast to; raises Invalid."""
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(s)) + s for s in shapes]
    found = []
    for extents in zip(*padded, strict=True):
        more = {e for e in extents if e != 1}
        check(len(more) <= 1, f"{shapes} do not broadcast")
        found.append(more.pop() if more else 1)
    return tuple(found)


def _is_float(dtype: str) -> bool:
    return dtype.startswith("float")


def _numbers(ins: Sequence[Type], a: Attrs) -> Type:
    check(ins[0][1] != "bool", "a number made of a condition")  # each dialect has its own way
    return ins[0]


def _floats(ins: Sequence[Type], a: Attrs) -> Type:
    check(_is_float(ins[0][1]), f"of {ins[0][1]}")
    return ins[0]


def _erf(ins: Sequence[Type], a: Attrs) -> Type:
    check((GENERATION, ins[0][1]) != ("relay", "float64"), "TVM computes it in float32")
    return _floats(ins, a)


def _together(ins: Sequence[Type]) -> Type:
    (left, dtype), (right, other) = ins
    check(dtype == other, f"{dtype} and {other}")
    return broadcast(left, right), dtype


def _binary(ins: Sequence[Type], a: Attrs) -> Type:
    _numbers(ins, a)
    return _together(ins)


def _condition(ins: Sequence[Type], a: Attrs) -> Type:
    return _together(ins)[0], "bool"


def _choice(ins: Sequence[Type], a: Attrs) -> Type:
    (condition, dtype), *others = ins
    check(dtype == "bool", f"a condition of {dtype}")
    shape, dtype = _together(others)
    return broadcast(condition, shape), dtype


def _integers(ins: Sequence[Type], a: Attrs) -> Type:
    check(not _is_float(ins[0][1]), "a shift of floats")
    return _binary(ins, a)


def _dense(ins: Sequence[Type], a: Attrs) -> Type:
    (shape, dtype), (weight, other) = ins
    check(dtype == other and len(weight) == 2 and len(shape) >= 2, "a dense layer's inputs")
    check(shape[-1] == weight[1], "the depth of a dense layer")
    return (*shape[:-1], weight[0]), a["out_dtype"] or dtype


def _product(ins: Sequence[Type], a: Attrs) -> Type:
    (left, dtype), (right, other) = ins
    check(dtype == other and min(len(left), len(right)) >= 2, "a product's inputs")
    rows, depth = left[-2:] if not a.get("transpose_a") else left[:-3:-1]
    other_depth, columns = right[-2:] if not a.get("transpose_b") else right[:-3:-1]
    check(depth == other_depth, "the depth of a product")
    return (*broadcast(left[:-2], right[:-2]), rows, columns), a.get("out_dtype") or dtype


def _batch_matmul(ins: Sequence[Type], a: Attrs) -> Type:
    check(len(ins[0][0]) == len(ins[1][0]) >= 3, "a product of batches")
    return _product(ins, a)


def _along(ins: Sequence[Type], a: Attrs) -> Type:
    """An op with vectors along one axis: bias_add, layer_norm, rms_norm, batch_norm."""
    shape, dtype = ins[0]
    extent = shape[axis_of(a["axis"], len(shape))]
    check(all(t == ((extent,), dtype) for t in ins[1:]), "vectors along an axis")
    return ins[0]


def _batch_norm(ins: Sequence[Type], a: Attrs) -> list[Type]:
    _floats(ins, a)
    return [_along(ins, a), ins[3], ins[4]]


def _layer_norm(ins: Sequence[Type], a: Attrs) -> Type:
    _floats(ins, a)
    return _along(ins, a)


def _one_axis(ins: Sequence[Type], a: Attrs) -> Type:
    axis_of(a["axis"], len(ins[0][0]))
    return _floats(ins, a)


def _reduced(ins: Sequence[Type], a: Attrs) -> Type:
    shape, dtype = ins[0]
    axes = range(len(shape)) if a["axis"] is None else a["axis"]
    gone = {axis_of(n, len(shape)) for n in ((axes,) if isinstance(axes, int) else axes)}
    kept = [1 if n in gone else e for n, e in enumerate(shape) if n not in gone or a["keepdims"]]
    return tuple(kept), dtype


def _concatenate(ins: Sequence[Type], a: Attrs) -> Type:
    shape, dtype = ins[0]
    axis = axis_of(a["axis"], len(shape))
    rest = {(s[:axis], s[axis + 1 :], d) for s, d in ins}
    check(len(rest) == 1, "what is concatenated differs")
    return (*shape[:axis], sum(s[axis] for s, _ in ins), *shape[axis + 1 :]), dtype


def _split(ins: Sequence[Type], a: Attrs) -> list[Type]:
    shape, dtype = ins[0]
    axis, parts = axis_of(a["axis"], len(shape)), a["indices_or_sections"]
    check(isinstance(parts, int) and shape[axis] % parts == 0, "the parts of a split")
    return [((*shape[:axis], shape[axis] // parts, *shape[axis + 1 :]), dtype)] * parts


def _reshape(ins: Sequence[Type], a: Attrs) -> Type:
    check(math.prod(a["shape"]) == math.prod(ins[0][0]), "a reshape's elements")
    return tuple(a["shape"]), ins[0][1]


def _transpose(ins: Sequence[Type], a: Attrs) -> Type:
    check(sorted(a["axes"]) == list(range(len(ins[0][0]))), "a transpose's axes")
    return tuple(ins[0][0][n] for n in a["axes"]), ins[0][1]


def _broadcast_to(ins: Sequence[Type], a: Attrs) -> Type:
    check(broadcast(ins[0][0], tuple(a["shape"])) == tuple(a["shape"]), "a broadcast")
    return tuple(a["shape"]), ins[0][1]


def _tile(ins: Sequence[Type], a: Attrs) -> Type:
    shape, repeats = ins[0][0], a["repeats"]
    rank = max(len(shape), len(repeats))
    both = ((1,) * (rank - len(each)) + tuple(each) for each in (shape, repeats))
    return tuple(n * times for n, times in zip(*both, strict=True)), ins[0][1]


def _levels(ins: Sequence[Type], a: Attrs) -> Type:
    """quantize and dequantize: a scale and a zero point of all, or along an axis."""
    shape, dtype = ins[0]
    is_float = _is_float(dtype)
    check(is_float != _is_float(a["out_dtype"]), f"{dtype} and {a['out_dtype']}")
    check("64" not in dtype and "bool" not in (dtype, a["out_dtype"]), f"levels of {dtype}")
    (scale, of_scale), (zero, of_zero) = ins[1:]
    check(of_scale == "float32" and not _is_float(of_zero), "a scale and a zero point")
    extents = {(), (1,), (shape[axis_of(a["axis"], len(shape))],)} if shape else {()}
    check(scale in extents and zero in extents, "a scale or a zero point along an axis")
    return shape, a["out_dtype"]


def _by_channel(ins: Sequence[Type], a: Attrs) -> Type:
    shape, axis = ins[0][0], a["axis"]
    check("int" in ins[0][1] and bool(shape), "integers with axes")
    vector = ((shape[axis_of(axis, len(shape))],), "int32")
    check(list(ins[1:]) == [vector, vector], "multipliers and shifts along an axis")
    return shape, a["out_dtype"]


_COMPARISONS = ("equal", "greater", "greater_equal", "less", "less_equal", "not_equal")
_OF_FLOATS = (
    "exp", "gelu_tanh", "hard_swish", "leaky_relu", "log", "round", "rsqrt", "sigmoid", "silu",
    "sqrt", "tanh",
)  # fmt: skip


RULES: dict[str, Callable[[Sequence[Type], Attrs], Any]] = {
    **dict.fromkeys(("add", "subtract", "multiply", "maximum", "minimum"), _binary),
    **dict.fromkeys(("divide", "power"), lambda ins, a: (_floats(ins, a), _binary(ins, a))[1]),
    **dict.fromkeys(_COMPARISONS, _condition), "where": _choice,
    **dict.fromkeys(("left_shift", "right_shift"), _integers),
    "fixed_point_multiply": lambda ins, a: ins[0],
    **dict.fromkeys(("relu", "clip", "abs", "negative"), _numbers),
    **dict.fromkeys(_OF_FLOATS, _floats), **dict.fromkeys(("erf", "gelu"), _erf),
    **dict.fromkeys(("max", "mean", "sum"), _reduced),
    "max_pool2d": windows.max_pool, "avg_pool2d": windows.avg_pool,
    "batch_matmul": _batch_matmul, "batch_norm": _batch_norm, "bias_add": _along,
    "broadcast_to": _broadcast_to, "cast": lambda ins, a: (ins[0][0], a["dtype"]),
    **dict.fromkeys(("dequantize", "quantize"), _levels), "requantize_by_channel": _by_channel,
    "concatenate": _concatenate, "conv1d_transpose": windows.transposed, "conv2d": windows.conv2d,
    "conv2d_transpose": windows.transposed, "dense": _dense, "lrn": _one_axis,
    "global_avg_pool2d": windows.global_pool, "layer_norm": _layer_norm, "rms_norm": _layer_norm,
    "matmul": _product, "requantize": lambda ins, a: (ins[0][0], a["out_dtype"]),
    "reshape": _reshape, "resize2d": windows.resize, "softmax": _one_axis, "split": _split,
    "tile": _tile, "transpose": _transpose,
    **onnx_ops.RULES,
}  # fmt: skip
