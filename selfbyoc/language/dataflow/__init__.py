"""A dataflow pattern of TVM (`is_op(...)(wildcard(), ...)`) as a pattern of this vocabulary."""

from __future__ import annotations

import inspect
from typing import Any

from ...errors import CompositeError
from ...ops.vocabulary import KINDS, is_declared, read_as
from ...tvm import GENERATION
from ...tvm.types import DFPattern
from ..dataflow_view import ANY, ATTRS, CALL, CONSTANT, DOMINATOR, EITHER, ITEM, TUPLE, View
from ..growing import Elementwise
from ..nodes import Arg, Either, Item, Node, Op, Program

if GENERATION == "relay":
    from .relay import is_pattern, view
else:
    from .relax import is_pattern, view

__all__ = ["is_pattern", "translated"]


def translated(owner: str, pattern: DFPattern) -> tuple[Program, tuple[str, ...]]:
    """The pattern as a function of `x0`, `x1`, ..., one for each wildcard in the order in which
    they are read; and which of these must be constants. Raises CompositeError with what cannot be
    said so, and the rest as the text of a pattern.
    """
    first = _Translation()
    outputs = first.outputs(pattern)
    names = [arg.name for arg in first.args]
    if first.problems:
        text = f"def pattern({', '.join(names)}): return {', '.join(map(_text, outputs))}"
        raise CompositeError(
            f"composite {owner}: a pattern of TVM's with {'; '.join(first.problems)}; "
            f"write it in the vocabulary, about as `{text}`"
        )

    def function(*args: Arg, **named: Arg) -> tuple[Node, ...]:
        given = (*args, *(named[name] for name in names[len(args) :]))
        return _Translation(given).outputs(pattern)

    parameters = [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in names]
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return function, tuple(first.constants)


class _Translation:
    """One walk: every node of TVM's is translated once, so that what is one stays one."""

    def __init__(self, args: tuple[Arg, ...] | None = None) -> None:
        self.given = args
        self.args: list[Arg] = []
        self.constants: list[str] = []
        self.problems: list[str] = []
        self.done: dict[Any, Node] = {}

    def outputs(self, pattern: DFPattern) -> tuple[Node, ...]:
        """The nodes of a whole pattern; those of a tuple are outputs."""
        seen = view(pattern)
        return tuple(map(self.node, seen.parts if seen.what == TUPLE else (pattern,)))

    def node(self, pattern: DFPattern) -> Node:
        """The node for a node of TVM's."""
        if pattern not in self.done:
            self.done[pattern] = self._made(view(pattern))
        return self.done[pattern]

    def _made(self, seen: View) -> Node:
        if seen.what in (ANY, CONSTANT):
            return self._arg(seen.what == CONSTANT)
        if seen.what == EITHER:
            return Either(tuple(map(self.node, seen.parts)))
        if seen.what == ATTRS:
            return self._with_attrs(self.node(seen.parts[0]), seen)
        if seen.what == ITEM:
            return self._item(self.node(seen.parts[0]), seen.index)
        if seen.what == CALL:
            return self._call(seen)
        if seen.what == DOMINATOR:
            self.problems.append("`dominates`, which is `elementwise`")
            return Elementwise(self.node(seen.parts[0]), 0, None, "operand")
        self.problems.append(f"{seen.name or 'a tuple'}, which a check can ask of `match`")
        return self._arg(False)

    def _arg(self, is_constant: bool) -> Arg:
        number = len(self.args)
        arg = Arg(f"x{number}") if self.given is None else self.given[number]
        self.args.append(arg)
        if is_constant:
            self.constants.append(arg.name)
        return arg

    def _call(self, seen: View) -> Node:
        kind = read_as(seen.name)
        parts = seen.parts
        if len(parts) == 1 and view(parts[0]).what == TUPLE:
            parts = view(parts[0]).parts
        inputs = tuple(map(self.node, parts))
        known = KINDS.get(kind)
        if not is_declared(seen.name) or known is None or not known.is_written:
            self.problems.append(f"{seen.name}, which is no op of it (`selfbyoc.declare` adds one)")
        elif known.inputs not in (None, len(inputs)):
            text = f"{len(inputs)} inputs of {seen.name}, as op.{kind} takes {known.inputs}"
            self.problems.append(text)
        return Op(kind, inputs, {})

    def _with_attrs(self, inner: Node, seen: View) -> Node:
        if not isinstance(inner, Op):
            self.problems.append(f"the attributes {sorted(seen.attrs)} of what is no op")
            return inner
        known = KINDS.get(inner.kind)
        names = {*known.attrs, *known.read_attrs} if known else set()
        for name in sorted(set(seen.attrs) - names):
            text = f"the attribute {name!r} of op.{inner.kind}, which has {sorted(names)}"
            self.problems.append(text)
        return Op(inner.kind, inner.inputs, {**inner.attrs, **seen.attrs})

    def _item(self, of: Node, index: int) -> Node:
        if isinstance(of, Op) and index >= 0:
            return Item(of, index)
        self.problems.append(f"item {index} of what is no op")
        return of


def _text(node: Node) -> str:
    """A node as Python of the vocabulary."""
    if isinstance(node, Either):
        return f"either({', '.join(map(_text, node.options))})"
    if isinstance(node, Item):
        return f"{_text(node.of)}[{node.index}]"
    if isinstance(node, Elementwise):
        return f"elementwise({_text(node.of)})"
    if not isinstance(node, Op):
        return repr(node)
    inputs = list(map(_text, node.inputs))
    if node.kind in KINDS and KINDS[node.kind].inputs is None:
        inputs = [f"[{', '.join(inputs)}]"]
    attrs = [f"{name}={value!r}" for name, value in node.attrs.items()]
    return f"op.{node.kind}({', '.join([*inputs, *attrs])})"
