"""The nodes that a traced pattern function leaves."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NoReturn, cast

import numpy as np

from ..errors import CompositeError
from ..tvm import te
from ..tvm.types import Attr, PrimExpr
from .operators import Operators
from .te_schedule import COMPUTES


class Node(Operators["Node"]):
    """A value in a pattern: an argument, a constant, an op's output, a choice or a repetition."""

    def _made(self, kind: str, *inputs: object) -> Node:
        return Op(kind, tuple(map(as_node, inputs)), {})

    def __getitem__(self, index: PrimExpr) -> Node:
        raise CompositeError(f"{self!r}[{index!r}]: only an op has outputs to take by index")

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


# What patterns and programs are: a function of values; several results are a tuple
Program = Callable[..., Node | tuple[Node, ...]]


class Arg(Node):
    """A named input; the same name twice means the same value twice."""

    def __init__(self, name: str, is_number: bool = False) -> None:
        self.name, self.is_number = name, is_number

    def __getitem__(self, index: PrimExpr) -> Node:
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

    def __init__(self, kind: str, inputs: tuple[Node, ...], attrs: dict[str, Attr]) -> None:
        self.kind, self.inputs, self.attrs = kind, inputs, attrs

    def is_op(self) -> bool:
        return True

    def below(self) -> tuple[Node, ...]:
        return self.inputs

    def __getitem__(self, index: int) -> Item:
        if not isinstance(cast(Any, index), int):
            text = f"x[...] takes an output of an op by its number, found {index!r}"
            raise CompositeError(f"{text}; elements are no part of a pattern")
        return Item(self, index)

    def __iter__(self) -> NoReturn:
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


def as_node(value: object) -> Node:
    """A node, or a Python number as a constant."""
    if isinstance(value, Node):
        return value
    if isinstance(value, (bool, np.bool_)):
        text = "`x == y` and `x != y` of two values are no ops; write op.equal or op.not_equal"
        raise CompositeError(f"a pattern works on arguments and ops, found {value}: {text}")
    if isinstance(value, (int, float)):
        return Number(value)
    if isinstance(value, (np.integer, np.floating)):
        return Number(value.item())
    if isinstance(value, te.Tensor):
        raise CompositeError(f"a pattern is of ops, found te.Tensor {value.op.name}: {COMPUTES}")
    if isinstance(value, np.ndarray):
        text = f"found an array of shape {value.shape}; make it an argument of the function"
        raise CompositeError(f"a pattern works on arguments and ops, {text}")
    if "dataflow_pattern" in type(value).__module__ or "dpl" in type(value).__module__:
        raise CompositeError(
            f"{type(value).__name__} of TVM's is no part of a function; hand the whole dataflow "
            f"pattern to Composite in the function's place, or write ops (`op.relu(x)`)"
        )
    found = "None" if value is None else f"{type(value).__name__}: {value!r}"
    raise CompositeError(f"a pattern works on arguments and ops, found {found}{_instead(value)}")


def _instead(value: object) -> str:
    """What to write where a function returned this."""
    if value is None:
        return ": is `return` missing?"
    if isinstance(value, list):
        return "; several results are a tuple"
    return "; return, not yield" if inspect.isgenerator(value) else ""


def reachable(root: Node, branches: bool = False) -> list[Node]:
    """A node and everything that it is computed from; `branches`: also that of a `many`."""
    found: dict[Node, None] = {}
    stack = [root]
    while stack:
        node = stack.pop()
        if node in found:
            continue
        found[node] = None
        stack.extend(node.below() if branches or not isinstance(node, Many) else ())
    return list(found)
