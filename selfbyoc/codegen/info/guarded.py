"""What a block reads under a condition: its axes in the range that is left of them.

TVM simplifies what it moves: under `i < 1` it writes 2 for `i * 4 + 2`. The two are equal where `i`
is 0, and that is what the data says: the variable is `i[0:1]` then.
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from functools import partial
from typing import Any

from ...tvm import Analyzer, tir, tvm, walk
from ...tvm.types import Expr, PrimExpr, Stmt, TirNode
from .index_data import in_part

LOADS = ("BufferLoad", "TensorLoad")  # 0.17, 0.27


class Guarded:
    """The conditions around each read of a block, and what they leave of its axes."""

    def __init__(self, block: Stmt) -> None:
        self.block = block
        self.guards: dict[Any, list[PrimExpr]] = {}
        self._seen: Counter[Any] = Counter()  # a read that stands in several places has no guard
        self._analyzer: Any = None
        walk(block.body, self._visit, "Call", "Select", "IfThenElse")
        if self.guards:
            walk(block.body, lambda load: self._seen.update([load]), *LOADS)

    def _visit(self, node: TirNode) -> None:
        kind = type(node).__name__
        if kind == "Select":
            self._note(node.condition, node.true_value, node.false_value)
        elif kind == "IfThenElse":
            self._note(node.condition, node.then_case, node.else_case)
        elif str(getattr(node.op, "name", "")).endswith(".if_then_else"):
            self._note(*node.args)

    def _note(self, condition: PrimExpr, then: TirNode, otherwise: TirNode | None) -> None:
        for branch, holds in ((then, condition), (otherwise, tir.Not(condition))):
            if branch is not None:
                walk(branch, partial(self._guard, holds), *LOADS)

    def _guard(self, condition: PrimExpr, load: TirNode) -> None:
        self.guards.setdefault(load, []).append(condition)

    def narrowed(self, load: TirNode) -> dict[PrimExpr, Expr]:
        """Axes of which a read sees a part only: the names of their variables."""
        guards = self.guards.get(load)
        if not guards or self._seen[load] != 1:
            return {}
        if self._analyzer is None:
            self._analyzer = Analyzer()
            for axis in self.block.iter_vars:
                self._analyzer.bind(axis.var, tvm.ir.Range(axis.dom.min, axis.dom.extent))
        with ExitStack() as stack:
            for guard in guards[::-1]:  # outer ones first, and in TVM's form, which it reads best
                plain = self._analyzer.simplify(guard)
                stack.enter_context(self._analyzer.constraint_scope(plain))
            found = (
                (axis, self._analyzer.const_int_bound(axis.var)) for axis in self.block.iter_vars
            )
            return {
                axis.var: in_part(
                    str(axis.var.name), int(bound.min_value), int(bound.max_value) + 1
                )
                for axis, bound in found
                if isinstance(axis.dom.extent, tir.IntImm)
                and bound.max_value - bound.min_value + 1 < int(axis.dom.extent)
            }
