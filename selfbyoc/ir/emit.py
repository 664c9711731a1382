"""A program of the vocabulary -> an IRModule of the generation at hand: how cases and tests become
models.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..errors import CompositeError
from ..language.case import typed
from ..language.growing import Elementwise, Repeat
from ..language.pattern import Arg, Either, Item, Many, Node, Number, Op, as_node
from ..ops.vocabulary import KINDS, complete
from .generation import writer


def emit(
    program: Callable[..., Any],
    args: Mapping[str, Any],
    constants: Mapping[str, np.ndarray] | None = None,
) -> Any:
    """`program` over arguments of these shapes, or (shape, dtype) -> IRModule with `main`.

    Arguments in `constants` become constants of the module, the others its parameters in order.
    Where a program has alternatives (`either`), the first whose arguments are all given is taken.
    """
    constants = constants or {}
    names = [n for n in inspect.signature(program).parameters if n in args or n in constants]
    outputs = program(**{n: Arg(n) for n in inspect.signature(program).parameters})
    nodes = outputs if isinstance(outputs, tuple) else (outputs,)
    params = {n: typed(n, args[n]) for n in names if n not in constants}

    def body(**variables: Any) -> list[Any]:
        known = {**variables, **{n: writer.constant(a) for n, a in constants.items()}}
        emitter = _Emitter(known)
        return [emitter.value(as_node(node)) for node in nodes]

    return writer.emit_module(params, body)


class _Emitter:
    """Emits each node once: a node used twice is one value."""

    def __init__(self, known: Mapping[str, Any]) -> None:
        self.known = known
        self.done: dict[int, Any] = {}

    def value(self, node: Node) -> Any:
        if isinstance(node, Either):
            return self.value(next(o for o in node.options if self._has_args(o)))
        if isinstance(node, (Elementwise, Repeat, Many)):
            return self._fewest(node)
        if isinstance(node, Arg):
            return self.known[node.name]
        if isinstance(node, Number):
            return writer.constant(np.asarray(node.value, "float32"))  # alone; see _inputs
        if id(node) not in self.done:
            self.done[id(node)] = self._emit(node)
        return self.done[id(node)]

    def _fewest(self, node: Elementwise | Repeat | Many) -> Any:
        """What may be there any number of times, none of it."""
        if isinstance(node, Many) or node.at_least > 0:
            name = type(node).__name__.lower()
            text = f"a pattern with `{name}` stands for several programs"
            raise CompositeError(f"{text}; expected a straight function: Case(lambda x: ..., ...)")
        return self.value(node.of)

    def _emit(self, node: Node) -> Any:
        if isinstance(node, Item):
            return writer.emit_item(self.value(node.of), node.index)
        assert isinstance(node, Op)
        means = KINDS[node.kind].means
        if means is not None and writer.function_of(node.kind) is None:
            return self.value(means(*node.inputs, **complete(node.kind, node.attrs)))
        return writer.emit_call(node.kind, self._inputs(node), complete(node.kind, node.attrs))

    def _inputs(self, node: Op) -> list[Any]:
        """The op's inputs; a number has the dtype of the tensors beside it."""
        known = {i: self.value(n) for i, n in enumerate(node.inputs) if not isinstance(n, Number)}
        has_number = len(known) < len(node.inputs)
        dtype = writer.dtype_of(next(iter(known.values()))) if has_number else ""
        return [
            writer.constant(np.asarray(n.value, dtype)) if isinstance(n, Number) else known[i]
            for i, n in enumerate(node.inputs)
        ]

    def _has_args(self, node: Node) -> bool:
        if isinstance(node, Arg):
            return node.name in self.known
        if isinstance(node, Either):
            return any(map(self._has_args, node.options))
        if isinstance(node, (Item, Elementwise, Repeat)):
            return self._has_args(node.of)
        return not isinstance(node, Many) and all(map(self._has_args, getattr(node, "inputs", ())))
