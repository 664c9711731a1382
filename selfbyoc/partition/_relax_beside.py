"""Relax: last ops side by side, made one result, as FuseOpsByPattern marks what one op ends in.

    q = dense(x, a)                  q_0 = dense(x, a)
    r = relu(q)            ->        k_0 = dense(x, b)
    k = dense(x, b)                  t = no_grad((q_0, k_0))
                                     q = t[0]; k = t[1]; r = relu(q)

The identity is there because FuseOpsByPattern (0.27) looks for roots among calls only. Variables
keep their names, so that all that reads them stays as it is; what reads one early comes later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tvm import relax

from .._tvm import tvm

# Of a match, by the name of its root: the tuple of its last results, and the identity after it.
Tied = dict[str, tuple[Any, Any]]


def beside(mod: tvm.IRModule, last: Mapping[str, Sequence[Any]]) -> tuple[tvm.IRModule, Tied]:
    """The module with the last calls of each match (by its root) made one result."""
    if not last:
        return mod, {}
    mutator = _Tuples(last)
    done = tvm.IRModule(dict(mod.functions.items()), attrs=mod.attrs)
    done.update_func(done.get_global_var("main"), mutator.visit_expr(mod["main"]))
    return done, mutator.made


@relax.expr_functor.mutator
class _Tuples(relax.PyExprMutator):
    """Puts the tuples in, block by block."""

    def __init__(self, last: Mapping[str, Sequence[Any]]) -> None:
        super().__init__()
        self.last = last
        self.made: Tied = {}

    def visit_dataflow_block_(self, block: relax.DataflowBlock) -> relax.DataflowBlock:
        bindings = list(block.bindings)
        for name, calls in self.last.items():
            if any(b.value.same_as(calls[0]) for b in bindings):
                bindings = self._tied(name, calls, bindings)
        return relax.DataflowBlock(bindings)

    def _tied(self, name: str, calls: Sequence[Any], bindings: Sequence[Any]) -> list[Any]:
        """The bindings with the calls of one match bound to other variables and tied."""
        holder = {c: b.var for c in calls for b in bindings if b.value.same_as(c)}
        plain = {c: relax.DataflowVar(f"{v.name}_0", v.ty) for c, v in holder.items()}
        tied = relax.Tuple([plain[c] for c in calls])
        result = self.builder_.normalize(relax.op.grad.no_grad(tied))
        var = relax.DataflowVar(f"{name}_beside", result.ty)
        self.made[name] = tied, result
        items = [
            relax.VarBinding(holder[c], self.builder_.normalize(relax.TupleGetItem(var, i)))
            for i, c in enumerate(calls)
        ]
        raw = [
            relax.VarBinding(plain[b.value], b.value) if b.value in plain else b for b in bindings
        ]
        return [*_sorted(raw, [relax.VarBinding(var, result), *items], set(calls))]


def _sorted(bindings: Iterable[Any], tied: Sequence[Any], calls: set[Any]) -> Iterator[Any]:
    """The tuple and its items after the last of the calls, and what reads the items after them."""
    waiting, late, left = [], {b.var for b in tied}, len(calls)
    for binding in bindings:
        if left and any(v in late for v in relax.analysis.free_vars(binding.value)):
            late.add(binding.var)
            waiting.append(binding)
            continue
        yield binding
        if binding.value in calls:
            left -= 1
            yield from (*tied, *waiting) if left == 0 else ()
