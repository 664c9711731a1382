"""Relax: main as FuseOpsByPattern marks it: each match ends in one op, its ops side by side.

    q = dense(x, a)                  q_0 = dense(x, a)
    r = relu(q)            ->        k_0 = dense(x, b)
    k = dense(x, b)                  t = no_grad((q_0, k_0))
                                     q = t[0]; k = t[1]; r = relu(q)

The identity is there because FuseOpsByPattern (0.27) looks for roots among calls only. Variables
keep their names, so that all that reads them stays as it is; what reads one early comes later. A
match is known by the name of the variable that its last op is bound to: no other has it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from tvm import relax

from ...tvm import tvm
from ...tvm.types import Binding, Expr
from .order import by_group

# Of a match, by the name of its root: the tuple of its last results, and the identity after it.
Tied = dict[str, tuple[Any, Any]]
Nodes = Mapping[str, Sequence[Any]]  # of the IR, of a match by its root


def beside(
    mod: tvm.IRModule, groups: Nodes, last: Nodes, roots: Collection[Expr]
) -> tuple[tvm.IRModule, Tied]:
    """The module with the nodes of each match side by side, and several last ones made one; `roots`
    are the nodes that the others end in.
    """
    mutator = _Beside(mod["main"], groups, last, roots)
    done = tvm.IRModule(dict(mod.functions.items()), attrs=mod.attrs)
    done.update_func(done.get_global_var("main"), mutator.visit_expr(mod["main"]))
    return done, mutator.made


@relax.expr_functor.mutator
class _Beside(relax.PyExprMutator):
    """Block by block."""

    def __init__(
        self, main: relax.Function, groups: Nodes, last: Nodes, roots: Collection[Expr]
    ) -> None:
        super().__init__()
        self.names = Counter(var.name for var in relax.analysis.bound_vars(main))
        self.roots = set(roots)
        self.group_of = {node: name for name, nodes in groups.items() for node in nodes}
        self.last = last
        self.made: Tied = {}

    def visit_dataflow_block_(self, block: relax.DataflowBlock) -> relax.DataflowBlock:
        bindings = list(block.bindings)
        var_of = {b.value: b.var for b in bindings}
        plain: dict[Any, Any] = {}
        tied: list[Any] = []
        for name, calls in self.last.items():
            if calls[0] in var_of:
                plain |= {c: relax.DataflowVar(f"{var_of[c].name}_0", var_of[c].ty) for c in calls}
                holders = [var_of[c] for c in calls]
                tied += self._tied(name, holders, [plain[c] for c in calls])
        raw = [
            relax.VarBinding(plain[b.value], b.value) if b.value in plain else b for b in bindings
        ]
        named = [new for b in (*raw, *tied) for new in self._named(b)]
        group_of = {b.var: self.group_of[b.value] for b in named if b.value in self.group_of}
        return relax.DataflowBlock(by_group(named, group_of))

    def _named(self, binding: Binding) -> Iterator[Binding]:
        """The last op of a match bound to a variable of a name of its own."""
        if binding.value not in self.roots or self.names[binding.var.name] == 1:
            yield binding
            return
        var = relax.DataflowVar(self._unused(binding.var.name), binding.var.ty)
        yield relax.VarBinding(var, binding.value)
        self.group_of[var] = self.group_of[binding.value]
        yield relax.VarBinding(binding.var, var)

    def _unused(self, name: str) -> str:
        found = next(new for n in count(1) if (new := f"{name}_{n}") not in self.names)
        self.names[found] = 1
        return found

    def _tied(self, name: str, holders: Sequence[Expr], plain: Sequence[Expr]) -> list[Binding]:
        """What binds the variables of one match's last calls, which are bound to others now."""
        tied = relax.Tuple(plain)
        result = self.builder_.normalize(relax.op.grad.no_grad(tied))
        var = relax.DataflowVar(self._unused(f"{name}_beside"), result.ty)
        self.roots.add(result)
        self.made[name] = tied, result
        items = [
            relax.VarBinding(holder, self.builder_.normalize(relax.TupleGetItem(var, i)))
            for i, holder in enumerate(holders)
        ]
        bindings = [relax.VarBinding(var, result), *items]
        self.group_of.update({b.value: name for b in bindings})
        return bindings
