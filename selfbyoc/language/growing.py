"""Parts of a pattern that stand for any number of ops: elementwise ones, and a repeated block."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, cast

from ..errors import CompositeError
from .nodes import Arg, Many, Node, as_node, asked_names, reachable

_numbers = count()  # of repetitions, in the order in which they were written


class _Growing(Node):
    """`of`, and after it between `at_least` and `at_most` (None: any number) of something."""

    grows = True

    def __init__(self, of: Node, at_least: int, at_most: int | None) -> None:
        self.of, self.at_least, self.at_most = of, at_least, at_most

    def is_op(self) -> bool:
        return self.at_least > 0 or self.of.is_op()

    def allows(self, count: int) -> bool:
        """Whether so many are enough and not too many."""
        return self.at_least <= count and (self.at_most is None or count <= self.at_most)


class Elementwise(_Growing):
    """Any elementwise ops after a value; their further operands are arguments `name_<number>`."""

    def __init__(self, of: Node, at_least: int, at_most: int | None, name: str) -> None:
        super().__init__(of, at_least, at_most)
        self.name = name

    def below(self) -> tuple[Node, ...]:
        return (self.of,)

    def numbered(self) -> set[str]:
        return {self.name}

    def __repr__(self) -> str:
        return f"elementwise({self.of!r})"


class Repeat(_Growing):
    """A block after a value, again and again; its own arguments get a number each."""

    def __init__(
        self, block: Callable[..., Node], of: Node, at_least: int, at_most: int | None
    ) -> None:
        super().__init__(of, at_least, at_most)
        self.block, self.number = block, next(_numbers)
        self.first, self.names = asked_names(lambda arg: as_node(block(of, arg)))

    def below(self) -> tuple[Node, ...]:
        return (self.first, self.of) if self.at_least == 0 else (self.first,)

    def numbered(self) -> set[str]:
        return self.names

    def __repr__(self) -> str:
        return f"repeat({self.first!r})"


class Rest(Node):
    """What is before the last `depth` blocks of a repetition, whose number is not known yet."""

    def __init__(self, of: Repeat, depth: int) -> None:
        self.of, self.depth = of, depth

    def is_op(self) -> bool:
        return self.of.of.is_op()

    def __repr__(self) -> str:
        return repr(self.of)


def elementwise(
    x: Node, at_least: int = 0, at_most: int | None = None, *, name: str = "operand"
) -> Node:
    """Any elementwise ops, built in or declared by you, between `x` and the result.

    All ops on the way from `x` are elementwise in place: each result has the shape of `x`. What
    else they read, of that shape or broadcast to it, are arguments of the match: `operand_0`,
    `operand_1`, ... in the order of the ops, or by another `name`. The most ops that can be cut out
    are taken, `at_least` and `at_most` so many. Raises CompositeError.
    """
    _check_counts("elementwise", at_least, at_most)
    if not str(name).isidentifier():
        raise CompositeError(f"elementwise: name={name!r}; expected a name, as of an argument")
    return Elementwise(as_node(x), at_least, at_most, name)


def repeat(
    block: Callable[..., Node], x: Node, at_least: int = 1, at_most: int | None = None
) -> Node:
    """A block of ops, and again on its result: `repeat(lambda y, arg: op.relu(op.conv2d(y,
    arg("weight"))), x)`.

    `block(y, arg)` computes from `y`, which is `x` or the result of the block before;
    `arg("weight")` is an argument of that block alone (named `weight_0`, `weight_1`, ... from `x`
    on), while an argument of the pattern is shared.
    """
    _check_counts("repeat", at_least, at_most)
    if not callable(cast(Any, block)):
        text = "expected a function (y, arg) -> op, as in repeat(lambda y, arg: op.relu(y), x)"
        raise CompositeError(f"repeat: {text}, found {block!r}")
    made = Repeat(block, as_node(x), at_least, at_most)
    if not made.first.is_op():
        raise CompositeError("repeat: the block returns a bare input; expected an op")
    start = Arg("y")
    within = reachable(asked_names(lambda arg: as_node(block(start, arg)))[0])
    if any(isinstance(node, (Many, Repeat)) for node in within):
        raise CompositeError("repeat: no block can have a `many` or a `repeat` in it")
    if not any(node is start for node in within):
        raise CompositeError("repeat: the block does not use its first argument, the value so far")
    return made


def _check_counts(what: str, at_least: object, at_most: object) -> None:
    if not isinstance(at_least, int) or at_least < 0:
        raise CompositeError(f"{what}: at_least={at_least!r}; expected a number from 0")
    if at_most is None:
        return
    least = max(at_least, 1)
    if not isinstance(at_most, int) or at_most < least:
        raise CompositeError(f"{what}: at_most={at_most!r}; expected None or a number from {least}")
