"""Where programs come from: the cases of composites, as programs of the fuzzer."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from ...language.case import Case
from ...language.composite import Composite
from ...language.growing import Elementwise, Repeat
from ...language.nodes import Arg, Either, Item, Many, Node, Number, Op, as_node
from ...ops.vocabulary import KINDS
from ...tvm import GENERATION
from . import program as P


def seeds(composites: Sequence[Composite]) -> list[P.Program]:
    """A program for each case that exists on this generation, in the composites' order."""
    return [
        case_program(composite, case)
        for composite in composites
        for case in composite.cases
        if GENERATION in case.generations
    ]


def case_program(composite: Composite, case: Case) -> P.Program:
    """A case as it is."""
    function = case.program or composite.pattern
    wanted = inspect.signature(function).parameters
    result = function(**{name: Arg(name) for name in wanted})
    roots = result if isinstance(result, tuple) else (result,)
    tracer = _Tracer(case.args, set(case.constants))
    outputs = tuple(tracer.place(as_node(root)) for root in roots)
    return P.Program(tuple(tracer.nodes), outputs, 0, (f"{composite.name} {case.name}",))


class _Tracer:
    """Nodes of a pattern -> nodes of a program, each once."""

    def __init__(self, args: Mapping[str, Any], constants: set[str]) -> None:
        self.args, self.constants = args, constants
        self.nodes: list[P.Node] = []
        self.done: dict[object, int] = {}

    def place(self, node: Node, dtype: str = "float32") -> int:
        """Where a node is; one that is new is added, after all that it reads."""
        if isinstance(node, Either):
            return self.place(next(o for o in node.options if self._is_given(o)), dtype)
        if isinstance(node, (Elementwise, Repeat)):
            return self.place(node.of, dtype)
        key = node.name if isinstance(node, Arg) else node
        if key not in self.done:
            self.done[key] = self._added(self._new(node, dtype))
        return self.done[key]

    def _added(self, node: P.Node) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1

    def _new(self, node: Node, dtype: str) -> P.Node:
        if isinstance(node, Arg):
            shape, kind = self.args[node.name]
            role = P.CONSTANT if node.name in self.constants else P.INPUT
            return P.Node(role, shape=tuple(shape), dtype=kind)
        if isinstance(node, Number):
            return P.Node(P.CONSTANT, dtype=dtype, value=node.value)
        if isinstance(node, Item):
            return P.Node(P.ITEM, (self.place(node.of),), {"index": node.index})
        assert isinstance(node, Op)
        return P.Node(node.kind, self._inputs(node), _plain(node))

    def _inputs(self, node: Op) -> tuple[int, ...]:
        """A number has the dtype of what is beside it."""
        known = {i: self.place(n) for i, n in enumerate(node.inputs) if not isinstance(n, Number)}
        beside, own = self._dtype(next(iter(known.values()), None)), KINDS[node.kind].numbers
        places = [
            known[i] if i in known else self._added(self._new(n, own.get(i, beside)))
            for i, n in enumerate(node.inputs)
        ]
        return tuple(places)

    def _dtype(self, index: int | None) -> str:
        """Of a value: that of its last cast, sum or leaf."""
        if index is None:
            return "float32"
        node = self.nodes[index]
        usual = KINDS[node.kind].attrs.get("out_dtype") if node.kind in KINDS else None
        told = node.dtype or node.attrs.get("dtype") or node.attrs.get("out_dtype") or usual
        return told or self._dtype(node.inputs[0])

    def _is_given(self, node: Node) -> bool:
        if isinstance(node, Arg):
            return node.name in self.args
        if isinstance(node, Either):
            return any(map(self._is_given, node.options))
        return not isinstance(node, Many) and all(map(self._is_given, node.below()))


def _plain(node: Op) -> dict[str, object]:
    """The attributes that are not the default; a predicate in a pattern stands for that."""
    default = KINDS[node.kind].attrs
    return {
        name: value
        for name, value in node.attrs.items()
        if not callable(value) and default.get(name, ...) != value
    }
