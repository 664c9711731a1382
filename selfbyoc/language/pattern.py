"""The pattern vocabulary: neutral op names.

A pattern is an ordinary function that computes what it matches::

    def pattern(x, weight, bias):
        return op.relu(op.bias_add(op.dense(x, weight), bias))

Keyword arguments are attributes. In a pattern they are constraints (a value, or a predicate);
in a `Case`'s program they are the values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..errors import CompositeError, did_you_mean
from ..ops.attr_words import ATTRIBUTES
from ..ops.attrs import NORMALIZERS
from ..ops.reference import described
from ..ops.vocabulary import KINDS, written
from ..tvm.types import Attr, Attrs
from .nodes import Arg, Either, Many, Node, Op, as_node

if TYPE_CHECKING:
    from .typed_ops import Ops  # `python -m selfbyoc ops --stub` writes it


def either(*options: Node | float) -> Node:
    """Match the first of the options that fits: `either(op.bias_add(y, bias), y)` is an optional
    bias.
    """
    if len(options) < 2:
        raise CompositeError(f"either needs two options or more, found {len(options)}")
    return Either(tuple(map(as_node, options)))


def number(arg: Node) -> Node:
    """An argument that is a constant of one element, whatever its shape."""
    if not isinstance(arg, Arg):
        raise CompositeError(f"number takes an argument of the pattern, found {arg!r}")
    return Arg(arg.name, is_number=True)


def many(branch: Callable[..., Node], at_least: int = 2) -> Many:
    """Any number of parallel branches, for `op.concatenate(many(branch))`.

    `branch(arg)` returns one branch; `arg("weight")` is an argument of that branch alone
    (named `weight_0`, `weight_1`, ... in the match), while an argument of the pattern is shared.
    """
    if not callable(cast(Any, branch)):
        text = 'expected a function (arg) -> branch, as in many(lambda arg: op.conv2d(x, arg("w")))'
        raise CompositeError(f"many: {text}, found {branch!r}")
    return Many(branch, at_least)


class Vocabulary:
    """The ops of patterns and programs: `op.<kind>(...)`, also those that were declared.

    `dir(op)` lists them, `help(op.conv2d)` describes one, docs/ops.md all of them. An unknown name
    is an error that lists the known ones.
    """

    def __getattr__(self, kind: str) -> Callable[..., Op]:
        if kind.startswith("__"):
            raise AttributeError(kind)
        if kind not in KINDS or not KINDS[kind].is_written:
            raise CompositeError(
                f"op.{kind} is not in the vocabulary; known: {written()}"
                f"{did_you_mean(kind, written())}"
            )

        def build(*inputs: object, **attrs: Attr) -> Op:
            _check_attrs(kind, attrs)
            return Op(kind, _inputs(kind, inputs), attrs)

        return described(build, KINDS[kind])

    def __dir__(self) -> list[str]:
        return written()


def _check_attrs(kind: str, attrs: Attrs) -> None:
    """A pattern with a name that the op has not, or no value of it, would match nothing."""
    known = sorted([*KINDS[kind].attrs, *KINDS[kind].read_attrs])
    for name, value in attrs.items():
        if name not in known:
            text = f"op.{kind} has no attribute {name!r}; known: {known}"
            raise CompositeError(text + did_you_mean(name, known))
        if isinstance(value, Node):
            text = f"op.{kind}: {name}: expected a constant or a predicate"
            raise CompositeError(f"{text}, found the value {value!r}; an attribute is no tensor")
        if isinstance(value, (Mapping, Set, np.ndarray)) or not _is_value(name, value):
            expected = f"{ATTRIBUTES[name].type}, " if name in ATTRIBUTES else ""
            text = f"op.{kind}: {name}: expected {expected}or a predicate"
            raise CompositeError(f"{text}, found {value!r}")


def _is_value(name: str, value: object) -> bool:
    if callable(value) or name not in NORMALIZERS:
        return True
    try:
        NORMALIZERS[name](value)
    except (TypeError, ValueError):
        return False
    return True


def _inputs(kind: str, inputs: tuple[object, ...]) -> tuple[Node, ...]:
    """Check the number of inputs; a list of tensors is flattened."""
    arity = KINDS[kind].inputs
    if arity is None:
        if len(inputs) == 1 and isinstance(inputs[0], Many):
            return (inputs[0],)
        if len(inputs) == 1 and isinstance(inputs[0], (list, tuple)):
            return tuple(map(as_node, inputs[0]))
        raise CompositeError(f"op.{kind}: expected one list of tensors, or many(branch)")
    if len(inputs) != arity:
        raise CompositeError(f"op.{kind}: expected {arity} tensor inputs, found {len(inputs)}")
    return tuple(map(as_node, inputs))


op = cast("Ops", Vocabulary())
"""The vocabulary: `op.<kind>(...)`, also the ops that were declared. `dir(op)` lists them,
`help(op.conv2d)` describes one. An unknown name raises CompositeError."""
