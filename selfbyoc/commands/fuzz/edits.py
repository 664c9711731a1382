"""Changes of ops: one exchanged, added, removed, one attribute, one more user."""

from __future__ import annotations

from random import Random
from typing import Any

from ...ops.resampling import MODES, ROUNDINGS
from .infer import Type
from .program import CONSTANT, INPUT, ITEM, Draft, Program

Types = list[tuple[Type, ...]]

_UNARY = (
    "relu", "clip", "silu", "sigmoid", "tanh", "gelu", "leaky_relu", "abs", "negative", "exp",
    "hard_swish", "erf", "round", "gelu_tanh",
)  # fmt: skip
_BINARY = ("add", "subtract", "multiply", "maximum", "minimum", "divide")
_CLIPS = ((0.0, 6.0), (0.0, 1.0), (-1.0, 1.0), (-1.0, 0.0), (0.0, 0.0), (2.0, -1.0), (0.5, 3.0))
_STRIDES = ((1, 1), (2, 2), (2, 1), (1, 3), (3, 2))
_PADS = (0, 1, 2, (0, 1, 1, 0), (1, 0), (2, 1, 0, 1), (1, 1, 2, 2))
_AXES = (-1, 0, 1, 2, 3, -2)
ATTRIBUTES: dict[str, dict[str, tuple[Any, ...]]] = {
    "conv2d": {"strides": _STRIDES, "padding": _PADS, "dilation": ((1, 1), (2, 2), (1, 2))},
    "max_pool2d": {
        "pool_size": ((2, 2), (3, 3), (1, 1), (3, 1), (2, 5)), "strides": _STRIDES,
        "padding": _PADS, "dilation": ((1, 1), (2, 2)), "ceil_mode": (True, False),
    },
    "avg_pool2d": {
        "pool_size": ((2, 2), (3, 3), (1, 1), (3, 1)), "strides": _STRIDES, "padding": _PADS,
        "dilation": ((1, 1), (2, 1)), "ceil_mode": (True, False),
        "count_include_pad": (True, False),
    },
    "softmax": {"axis": _AXES}, "layer_norm": {"axis": _AXES, "epsilon": (1e-5, 1e-12, 0.1)},
    "rms_norm": {"axis": _AXES, "epsilon": (1e-5, 1e-12, 0.1)},
    "batch_norm": {"axis": _AXES, "epsilon": (1e-5, 1e-3, 0.5)}, "bias_add": {"axis": _AXES},
    "concatenate": {"axis": _AXES}, "leaky_relu": {"alpha": (0.01, 0.0, 1.0, -0.5, 2.0)},
    "batch_matmul": {"transpose_a": (True, False), "transpose_b": (True, False)},
    "mean": {"axis": ((1,), (2, 3), None, (0,)), "keepdims": (True, False)},
    "sum": {"axis": ((1,), (2, 3), None, (0,)), "keepdims": (True, False)},
    "lrn": {
        "size": (1, 3, 5, 7), "alpha": (1e-5, 1e-4, 0.5), "beta": (0.75, 0.5, 1.0),
        "bias": (1.0, 2.0, 0.5), "axis": (1, 2, 3),
    },
    "resize2d": {
        "size": ((5, 9), (14, 3), (12, 12), (1, 7), (8, 20)),
        "method": ("linear", "nearest_neighbor"), "coordinate_transformation_mode": tuple(MODES),
        "rounding_method": ROUNDINGS,
    },
    "tile": {"repeats": ((1, 3, 1), (1, 2, 1), (1, 1, 7, 1), (2, 1, 1), (1, 1, 2))},
    "transpose": {
        "axes": ((0, 2, 1, 3), (0, 2, 3, 1), (0, 3, 1, 2), (1, 0, 2, 3), (0, 2, 1), (1, 0)),
    },
}  # fmt: skip


def _ops(program: Program, kinds: tuple[str, ...] | None = None) -> list[int]:
    return [
        i
        for i, n in enumerate(program.nodes)
        if not n.is_leaf and n.kind != ITEM and (kinds is None or n.kind in kinds)
    ]


def _values(program: Program, types: Types) -> list[int]:
    """What an op computes, one tensor each."""
    return [i for i, n in enumerate(program.nodes) if not n.is_leaf and len(types[i]) == 1]


def exchange(program: Program, types: Types, rng: Random) -> Program | None:
    """One op by another of as many inputs."""
    pools = {"max_pool2d": "avg_pool2d", "avg_pool2d": "max_pool2d"}
    found = _ops(program, (*_UNARY, *_BINARY, *pools))
    if not found:
        return None
    draft, at = Draft(program), rng.choice(found)
    old = program.nodes[at]
    if old.kind in pools:
        attrs = {n: v for n, v in old.attrs.items() if n != "count_include_pad"}
        draft.change(at, kind=pools[old.kind], attrs=attrs)
    else:
        new = rng.choice(_UNARY if old.kind in _UNARY else _BINARY)
        draft.change(at, kind=new, attrs=_new_attrs(new, rng))
    return draft.done(f"{old.kind} -> {draft.nodes[at].kind}")


def _new_attrs(kind: str, rng: Random) -> dict[str, float]:
    if kind != "clip":
        return {}
    low, high = rng.choice(_CLIPS)
    return {"a_min": low, "a_max": high}


def insert(program: Program, types: Types, rng: Random) -> Program | None:
    """One more op after a value: on it alone, with a constant, or with a tensor."""
    places = [*_values(program, types), *program.leaves()]
    draft, at = Draft(program), rng.choice(places)
    shape, dtype = types[at][0]
    if rng.random() < 0.4:
        kind = rng.choice(_UNARY)
        new = draft.op(kind, at, **_new_attrs(kind, rng))
    else:
        kind = rng.choice(_BINARY)
        pair = [at, _operand(draft, shape, dtype, rng)]
        rng.shuffle(pair)
        new = draft.op(kind, *pair)
    draft.redirect(at, new)
    return draft.done(f"{kind} after {program.nodes[at].kind}")


def choice(program: Program, types: Types, rng: Random) -> Program | None:
    """A PReLU after a value, as a choice: without a jump, which rounding would decide."""
    draft, at = Draft(program), rng.choice(_values(program, types))
    shape, dtype = types[at][0]
    if not dtype.startswith("float"):
        return None
    kind = rng.choice(("greater", "greater_equal", "less"))
    condition = draft.op(kind, at, draft.scalar(0.0, dtype))
    product = draft.op("multiply", at, _operand(draft, shape, dtype, rng))
    sides = (product, at) if kind == "less" else (at, product)
    draft.redirect(at, draft.op("where", condition, *sides), keep=(condition, product))
    return draft.done(f"a choice after {program.nodes[at].kind}")


def _operand(draft: Draft, shape: tuple[int, ...], dtype: str, rng: Random) -> int:
    """A number (of any rank), a vector along an axis, a part of the shape, or all of it."""
    ndim, role = len(shape), rng.choice((INPUT, CONSTANT))
    how = rng.choice(("number", "number", "axis", "last", "some", "all", "more"))
    if how == "number":
        whole = not dtype.startswith("float")
        value = rng.choice((1, 2, 3)) if whole else rng.choice((0.5, 1.0, 0.0, -1.0, 2.0, 0.125))
        return draft.scalar(value, dtype, rng.randrange(ndim + 1))
    if how == "axis" and ndim:
        kept = rng.randrange(ndim)
        return draft.leaf([e if n == kept else 1 for n, e in enumerate(shape)], dtype, role)
    if how == "last" and ndim:
        return draft.leaf(shape[rng.randrange(ndim) :], dtype, role)
    if how == "some":
        return draft.leaf([e if rng.random() < 0.5 else 1 for e in shape], dtype, role)
    if how == "more" and ndim:  # larger than what it is combined with, where that has a 1
        return draft.leaf([3 if e == 1 else e for e in shape], dtype, role)
    return draft.leaf(shape, dtype, role)


def remove(program: Program, types: Types, rng: Random) -> Program | None:
    """An op whose result is of the type of one of its inputs."""
    found = [
        (i, j)
        for i in _values(program, types)
        for j in program.nodes[i].inputs
        if types[j] == types[i]
    ]
    if not found:
        return None
    at, before = rng.choice(found)
    draft = Draft(program)
    draft.redirect(at, before)
    if all(draft.nodes[i].is_leaf for i in draft.outputs):
        return None
    return draft.done(f"without {program.nodes[at].kind}")


def attribute(program: Program, types: Types, rng: Random) -> Program | None:
    """One attribute of one op at another value."""
    found = _ops(program, (*ATTRIBUTES, "clip"))
    if not found:
        return None
    draft, at = Draft(program), rng.choice(found)
    node = program.nodes[at]
    if node.kind == "clip":
        attrs = _new_attrs("clip", rng)
    else:
        name = rng.choice(list(ATTRIBUTES[node.kind]))
        attrs = {name: rng.choice(ATTRIBUTES[node.kind][name])}
    draft.change(at, attrs={**node.attrs, **attrs})
    return draft.done(f"{node.kind} {attrs}")


def user(program: Program, types: Types, rng: Random) -> Program | None:
    """A value inside is returned as well, or read by one more op that is returned or added."""
    found = [i for i in _values(program, types) if i not in program.outputs]
    at = rng.choice(found or list(program.outputs))
    draft = Draft(program)
    how = rng.choice(("returned", "read", "added"))
    if how == "returned" and found:
        draft.outputs.insert(rng.randrange(len(draft.outputs) + 1), at)
        return draft.done(f"{program.nodes[at].kind} is returned too")
    new = draft.op(rng.choice(("negative", "abs", "relu")), at)
    if how == "added" and types[program.outputs[0]] == types[at]:
        draft.outputs[0] = draft.op("add", draft.outputs[0], new)
    else:
        draft.outputs.append(new)
    return draft.done(f"{program.nodes[at].kind} has another reader")


def roles(program: Program, types: Types, rng: Random) -> Program | None:
    """A constant as an input, an input as a constant, or one value in two roles."""
    draft, leaf = Draft(program), rng.choice(program.leaves())
    same = [
        i for i in range(leaf) if types[i] == types[leaf] and i != leaf
    ] + [i for i in program.leaves() if i > leaf and types[i] == types[leaf]]  # fmt: skip
    if same and rng.random() < 0.7:
        draft.redirect(leaf, rng.choice(same))
        return draft.done("one value in two roles")
    node = program.nodes[leaf]
    if node.kind == CONSTANT:
        draft.change(leaf, kind=INPUT, value=None)
    else:
        draft.change(leaf, kind=CONSTANT)
    return draft.done(f"a {node.kind} as the other kind of leaf")


EDITS = (exchange, insert, insert, choice, remove, attribute, attribute, user, roles)
