"""A program of the vocabulary -> an IRModule of the generation at hand: how cases and tests become
models.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import CompositeError, SelfbyocError, did_you_mean, one_line
from ..graph import OpGraph
from ..language.case import typed
from ..language.growing import Elementwise, Repeat
from ..language.nodes import Arg, Either, Item, Many, Node, Number, Op, Program, as_node
from ..ops.vocabulary import KINDS, complete
from ..tvm.types import Attrs, Expr, IRModule
from .generation import writer
from .graph_program import written_as


def emit(
    program: Program | OpGraph,
    args: Mapping[str, Any] | None = None,
    constants: Mapping[str, np.ndarray] | None = None,
) -> IRModule:
    """`program` over arguments of these shapes, or (shape, dtype) -> IRModule with `main`.

    program    a function of the vocabulary, such as a composite's pattern; or a graph, such as
               `raise_ops` makes, whose inputs are the parameters and say their shapes
    args       {argument: shape, or (shape, dtype)}; float32 where no dtype is given
    constants  {argument: array}: these become constants of the module, the others its parameters

    Where a program has alternatives (`either`), the first whose arguments are all given is taken.
    Raises CompositeError for what is not in the vocabulary, or has no type here.
    """
    constants = constants or {}
    types: list[str] = []
    if isinstance(program, OpGraph):
        types = [value.type if value.is_static else "" for value in program.outputs]
        program, args, constants = written_as(program, args or {}, constants)
    args = args or {}
    names = _names(program, args, constants)
    outputs = program(**{n: Arg(n) for n in inspect.signature(program).parameters})
    nodes = outputs if isinstance(outputs, tuple) else (outputs,)
    params = {n: typed(n, args[n]) for n in names if n not in constants}

    large: list[str] = []

    def body(**variables: Expr) -> list[Expr]:
        known = {**variables, **{n: writer.constant(a) for n, a in constants.items()}}
        emitter = _Emitter(known, large)
        made = [emitter.value(as_node(node)) for node in nodes]
        _check_types(made, types)
        return made

    try:
        return writer.emit_module(params, body)
    except SelfbyocError:
        raise
    except Exception as err:  # TVM raises plain errors of many kinds
        what = large[0] if large else "this is no program"
        raise CompositeError(f"emit: {what}; TVM: {_said(err)}") from err


def _check_types(made: Sequence[Expr], types: Sequence[str]) -> None:
    """The results of a graph are what it says: no attribute got lost."""
    for position, (expr, wanted) in enumerate(zip(made, types, strict=False)):
        found = writer.type_of(expr)
        if wanted and found != wanted:
            raise CompositeError(f"emit: output {position}: the graph has {wanted}, TVM {found}")


def _names(program: Program, *given: Any) -> list[str]:
    """The arguments of the program that are given, in its order; nothing else may be."""
    for each in given:
        if not isinstance(each, Mapping):
            found = type(each).__name__
            raise CompositeError(f"emit: expected {{argument: shape}}, found {found}: {each!r}")
    known = list(inspect.signature(program).parameters)
    if unknown := sorted(set().union(*given) - set(known)):
        text = f"emit: args names {unknown}, which are no arguments of the program"
        raise CompositeError(f"{text}; expected some of {known}{did_you_mean(unknown[0], known)}")
    return [name for name in known if any(name in each for each in given)]


def _said(err: Exception) -> str:
    """TVM's reason in a line, without the entry of its op registry that some begin with."""
    return re.sub(r"In ir[.]Op[(].*[)], ", "", one_line(err))[:300]


class _Emitter:
    """Emits each node once: a node used twice is one value. A chain of nodes may be longer than
    Python's stack, so nothing here calls itself.
    """

    def __init__(self, known: Mapping[str, Expr], large: list[str]) -> None:
        self.known, self.large = known, large
        self.done: dict[Node, Any] = {}
        self.has_args: dict[Node, bool] = {}
        self.programs: dict[Node, Node] = {}  # an op -> the ops that it is written as

    def value(self, root: Node) -> Expr:
        for node in _in_order(root, self._read, self.done):
            self.done[node] = self._emit(node)
        return self.done[root]

    def _read(self, node: Node) -> Sequence[Node]:
        """The nodes that one is emitted from."""
        if isinstance(node, Either):
            taken = next(filter(self._has_args, node.options), None)
            if taken is None:
                text = "emit: no alternative of an `either` has all of its arguments here"
                raise CompositeError(f"{text}; given: {list(self.known)}")
            return [taken]
        if isinstance(node, (Elementwise, Repeat, Many)):
            return [_fewest(node)]
        if isinstance(node, Item):
            return [node.of]
        if not isinstance(node, Op):
            return []
        means = KINDS[node.kind].means
        if means is None or writer.function_of(node.kind) is not None:
            return [n for n in node.inputs if not isinstance(n, Number)]
        if node not in self.programs:
            program = means(*node.inputs, **complete(node.kind, node.attrs))
            self.programs[node] = as_node(program)
        return [self.programs[node]]

    def _emit(self, node: Node) -> Expr:
        read = [self.done[n] for n in self._read(node)]
        if isinstance(node, Arg):
            if node.name not in self.known:
                text = f"emit: argument {node.name!r} has no shape here"
                raise CompositeError(f"{text}; given: {list(self.known)}")
            return self.known[node.name]
        if isinstance(node, Number):
            return writer.constant(np.asarray(node.value, "float32"))  # alone; see _inputs
        if isinstance(node, Item):
            return writer.emit_item(read[0], node.index)
        if not isinstance(node, Op) or node in self.programs:
            return read[0]
        attrs = complete(node.kind, node.attrs)
        self.large += [f"op.{node.kind}: {text}" for text in _large(attrs)]
        return self._called(node, _inputs(node, read), attrs)

    def _called(self, node: Op, inputs: list[Expr], attrs: Attrs) -> Expr:
        if asked := [name for name, value in attrs.items() if callable(value)]:
            text = f"emit: op.{node.kind}: {asked[0]}: a program needs a value"
            raise CompositeError(f"{text}, found a predicate")
        try:
            return writer.emit_call(node.kind, inputs, attrs)
        except SelfbyocError:
            raise
        except Exception as err:  # TVM raises plain errors of many kinds
            if self.large:
                raise
            types = ", ".join(map(writer.type_of, inputs))
            raise CompositeError(f"emit: op.{node.kind} of {types}: TVM: {_said(err)}") from err

    def _has_args(self, root: Node) -> bool:
        """Whether all arguments of an alternative are given."""
        for node in _in_order(root, _asked, self.has_args):
            below = [self.has_args[n] for n in _asked(node)]
            found = any(below) if isinstance(node, Either) else all(below)
            if isinstance(node, Arg):
                found = node.name in self.known
            self.has_args[node] = found and not isinstance(node, Many)
        return self.has_args[root]


def _large(attrs: Attrs) -> Iterator[str]:
    """Attributes with a number of more than 32 bits, which TVM may not take, in words."""
    for name, value in attrs.items():
        for number in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(number, int) and abs(number) >= 1 << 31:
                yield f"{name}: expected numbers of 32 bits, found {number}"


def _asked(node: Node) -> Sequence[Node]:
    """The nodes whose arguments decide about an alternative."""
    if isinstance(node, (Elementwise, Repeat)):
        return [node.of]
    return () if isinstance(node, Many) else node.below()


def _in_order(
    root: Node, read: Callable[[Node], Sequence[Node]], done: Mapping[Node, Expr]
) -> Iterator[Node]:
    """The nodes that are not done, each after those that it reads; the caller does each."""
    stack = [root]
    while stack:
        waiting = [n for n in read(stack[-1]) if n not in done]
        if waiting:
            stack += waiting[::-1]
        elif (node := stack.pop()) not in done:
            yield node


def _fewest(node: Elementwise | Repeat | Many) -> Node:
    """What may be there any number of times, none of it."""
    if isinstance(node, Many) or node.at_least > 0:
        name = type(node).__name__.lower()
        text = f"a pattern with `{name}` stands for several programs"
        raise CompositeError(f"{text}; expected a straight function: Case(lambda x: ..., ...)")
    return node.of


def _inputs(node: Op, tensors: Sequence[Expr]) -> list[Expr]:
    """The op's inputs; a number has the dtype of the tensors beside it, a condition aside."""
    given = iter(tensors)
    rest = tensors[1:] if node.kind == "where" else tensors
    dtype = ""
    if len(tensors) < len(node.inputs):
        dtype = writer.dtype_of(rest[0]) if rest else "float32"
    known = KINDS[node.kind].numbers
    return [
        writer.constant(np.asarray(n.value, known.get(i, dtype)))
        if isinstance(n, Number)
        else next(given)
        for i, n in enumerate(node.inputs)
    ]
