"""The pattern vocabulary: neutral op names, and the nodes that a traced pattern function leaves.

A pattern is an ordinary function that computes what it matches::

    def pattern(x, weight, bias):
        return op.relu(op.bias_add(op.dense(x, weight), bias))

Keyword arguments are attributes. In a pattern they are constraints (a value, or a predicate);
in a `Case`'s program they are the values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .._tvm import te
from ..errors import CompositeError, did_you_mean
from ..ops.vocabulary import KINDS, written
from .te_schedule import COMPUTES


class Node:
    """A value in a pattern: an argument, a constant, an op's output, a choice or a repetition."""

    grows = False  # whether it stands for any number of ops after one another

    def is_op(self) -> bool:
        """Whether an op produces this value."""
        return False

    def below(self) -> tuple[Node, ...]:
        """What it is computed from: all options of a choice, one of what is repeated."""
        return ()

    def numbered(self) -> set[str]:
        """The names of the arguments that get a number each in the match."""
        return set()


class Arg(Node):
    """A named input; the same name twice means the same value twice."""

    def __init__(self, name: str, is_number: bool = False) -> None:
        self.name, self.is_number = name, is_number

    def __getitem__(self, index: Any) -> Node:
        raise CompositeError(f"{self.name} is no tensor with elements here: {COMPUTES}")

    @property
    def shape(self) -> tuple[int, ...]:
        raise CompositeError(f"{self.name} has no shape here: {COMPUTES}")

    def __repr__(self) -> str:
        return self.name


class Number(Node):
    """A constant written in the pattern or program."""

    def __init__(self, value: float) -> None:
        self.value = value

    def __repr__(self) -> str:
        return repr(self.value)


class Op(Node):
    """One op: its kind, its inputs and the constraints on its attributes."""

    def __init__(self, kind: str, inputs: tuple[Node, ...], attrs: dict[str, Any]) -> None:
        self.kind, self.inputs, self.attrs = kind, inputs, attrs

    def is_op(self) -> bool:
        return True

    def below(self) -> tuple[Node, ...]:
        return self.inputs

    def __getitem__(self, index: int) -> Item:
        return Item(self, index)

    def __iter__(self) -> Any:
        # Without this, Python iterates by __getitem__ and never ends.
        raise TypeError(f"op.{self.kind} is not iterable; take its outputs by index")

    def __repr__(self) -> str:
        return f"{self.kind}({', '.join(map(repr, self.inputs))})"


class Item(Node):
    """One output of an op that has several, as `op.batch_norm(...)[0]`."""

    def __init__(self, of: Op, index: int) -> None:
        self.of, self.index = of, index

    def is_op(self) -> bool:
        return True

    def below(self) -> tuple[Node, ...]:
        return (self.of,)

    def __repr__(self) -> str:
        return f"{self.of!r}[{self.index}]"


class Either(Node):
    """Alternatives; the first that matches wins."""

    def __init__(self, options: tuple[Node, ...]) -> None:
        self.options = options

    def is_op(self) -> bool:
        return all(option.is_op() for option in self.options)

    def below(self) -> tuple[Node, ...]:
        return self.options

    def __repr__(self) -> str:
        return " | ".join(map(repr, self.options))


class Many(Node):
    """The inputs of a concatenate: `at_least` branches, each of one shape; arguments get a number
    each.
    """

    def __init__(self, branch: Callable[[Callable[[str], Arg]], Node], at_least: int) -> None:
        self.branch, self.at_least = branch, at_least

    def instance(self, index: int) -> Node:
        """The branch number `index`, its own arguments named `name_<index>`."""
        return self.branch(lambda name: Arg(f"{name}_{index}"))

    def below(self) -> tuple[Node, ...]:
        return (self.instance(0),)

    def numbered(self) -> set[str]:
        return asked_names(self.branch)[1]


def asked_names(branch: Callable[[Callable[[str], Arg]], Node]) -> tuple[Node, set[str]]:
    """A branch, and the names of arguments that it asks for."""
    asked: set[str] = set()

    def arg(name: str) -> Arg:
        asked.add(name)
        return Arg(name)

    return branch(arg), asked


def as_node(value: Any) -> Node:
    """A node, or a Python number as a constant."""
    if isinstance(value, Node):
        return value
    if isinstance(value, (int, float)):
        return Number(value)
    if isinstance(value, te.Tensor):
        raise CompositeError(f"a pattern is of ops, found te.Tensor {value.op.name}: {COMPUTES}")
    raise CompositeError(
        f"a pattern works on arguments and ops, found {type(value).__name__}: {value!r}"
    )


def either(*options: Any) -> Any:
    """Match the first of the options that fits: `either(op.bias_add(y, bias), y)` is an optional
    bias.
    """
    if len(options) < 2:
        raise CompositeError(f"either needs two options or more, found {len(options)}")
    return Either(tuple(map(as_node, options)))


def number(arg: Any) -> Any:
    """An argument that is a constant of one element, whatever its shape."""
    if not isinstance(arg, Arg):
        raise CompositeError(f"number takes an argument of the pattern, found {arg!r}")
    return Arg(arg.name, is_number=True)


def many(branch: Callable[..., Node], at_least: int = 2) -> Many:
    """Any number of parallel branches, for `op.concatenate(many(branch))`.

    `branch(arg)` returns one branch; `arg("weight")` is an argument of that branch alone
    (named `weight_0`, `weight_1`, ... in the match), while an argument of the pattern is shared.
    """
    return Many(branch, at_least)


class Vocabulary:
    """`op.<kind>(...)`: the neutral ops. An unknown name is an error that lists the known ones."""

    def __getattr__(self, kind: str) -> Callable[..., Any]:
        if kind.startswith("__"):
            raise AttributeError(kind)
        if kind not in KINDS or not KINDS[kind].is_written:
            raise CompositeError(
                f"op.{kind} is not in the vocabulary; known: {written()}"
                f"{did_you_mean(kind, written())}"
            )

        def build(*inputs: Any, **attrs: Any) -> Op:
            _check_attrs(kind, attrs)
            return Op(kind, _inputs(kind, inputs), attrs)

        return build

    def __dir__(self) -> list[str]:
        return written()


def _check_attrs(kind: str, attrs: Mapping[str, Any]) -> None:
    """A pattern with a name that the op has not would match nothing."""
    known = sorted([*KINDS[kind].attrs, *KINDS[kind].read_attrs])
    for name in attrs:
        if name not in known:
            text = f"op.{kind} has no attribute {name!r}; known: {known}"
            raise CompositeError(text + did_you_mean(name, known))


def _inputs(kind: str, inputs: tuple[Any, ...]) -> tuple[Node, ...]:
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


op = Vocabulary()


def reachable(root: Node, branches: bool = False) -> list[Node]:
    """A node and everything that it is computed from; `branches`: also that of a `many`."""
    found: dict[int, Node] = {}
    stack = [root]
    while stack:
        node = stack.pop()
        if id(node) in found:
            continue
        found[id(node)] = node
        stack.extend(node.below() if branches or not isinstance(node, Many) else ())
    return list(found.values())
