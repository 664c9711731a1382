"""Relax: sizes that a model computes. FuseOps and FuseOpsByPattern (0.27) sort what they fuse by
the values that each op reads, not by the sizes: a tensor of `n` elements may come before the
match_cast that says what `n` is, and then TVM does not build it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import relax

from ...simplify.relax.exprs import leaves
from ...tvm import tir, tvm, walk
from ...tvm.types import Binding, Expr, Function, TirNode, Type


@tvm.transform.module_pass(opt_level=0, name="ComputedSizesFirst")
def computed_sizes_first(mod: tvm.IRModule, _: object) -> tvm.IRModule:
    """Each size that is computed before what has it, and a dataflow block for what comes after it:
    within a block TVM sorts as it likes.
    """
    done = tvm.IRModule(dict(mod.functions.items()), attrs=mod.attrs)
    for gv, func in mod.functions.items():
        if isinstance(func, relax.Function) and _computed(func):
            done.update_func(gv, _parted(func))
    return done


def _computed(func: Function) -> dict[Expr, Binding]:
    """The variables that a function computes: symbol -> the binding that defines it."""
    found: dict[Any, Any] = {}
    if not isinstance(func.body, relax.SeqExpr):
        return found
    known = {symbol for param in func.params for symbol in _symbols(param.ty)}
    for block in func.body.blocks:
        for binding in block.bindings:
            if isinstance(binding, relax.MatchCast):
                new = [s for s in _symbols(binding.ty) if s not in known]
                found |= {symbol: binding for symbol in new if symbol not in found}
    return found


def _symbols(node: Type) -> list[Expr]:
    """The sizes without a number in a type, or in an expression and the types of what it reads:
    variables of Relax and of TIR are of one class.
    """
    found: list[Any] = []

    def visit(inner: TirNode) -> None:
        if isinstance(inner, tir.Var) and isinstance(inner.ty, tvm.ir.PrimType):
            found.append(inner)

    walk(node, visit)
    return found


def _parted(func: Function) -> Function:
    """The function, its bindings sorted, in blocks that end where a size is known."""
    defined, blocks = _computed(func), list[Any]()
    for block in func.body.blocks:
        if not isinstance(block, relax.DataflowBlock):
            blocks.append(block)
            continue
        parts: list[list[Any]] = [[]]
        for binding in _sorted(block.bindings, defined):
            parts[-1].append(binding)
            if binding in defined.values():
                parts.append([])
        blocks += [relax.DataflowBlock(part) for part in parts if part]
    body = _Shared(blocks).visit_expr(relax.SeqExpr(blocks, func.body.body))
    return relax.Function(
        func.params, body, func.ret_ty, func.is_pure, attrs=func.attrs, span=func.span
    )


def _sorted(bindings: Sequence[Binding], defined: dict[Expr, Binding]) -> list[Binding]:
    """In the order that they have, but each after all that it needs."""
    own = {binding.var: binding for binding in bindings}
    done: dict[Any, None] = {}
    for binding in bindings:
        waiting = [] if binding in done else [binding]
        while waiting:  # no recursion: main may be deep
            top = waiting[-1]
            needed = [b for b in _needed(top, own, defined) if b not in done]
            if needed:
                waiting += needed
            else:
                done[waiting.pop()] = None
    return list(done)


def _needed(
    binding: Binding, own: dict[Expr, Binding], defined: dict[Expr, Binding]
) -> list[Binding]:
    """The bindings of this block that one reads: values, and the sizes in its type."""
    read = [own[leaf] for leaf in leaves(binding.value) if leaf in own]
    sizes = [defined[s] for s in _symbols(binding.var.ty) if s in defined]
    for leaf in leaves(binding.value):
        if leaf not in own:
            sizes += [defined[s] for s in _symbols(leaf) if s in defined]
    return [b for b in (*read, *sizes) if b is not binding and b.var in own]


@relax.expr_functor.mutator
class _Shared(relax.PyExprMutator):
    """Variables that another block reads, as such: not those of a dataflow block."""

    def __init__(self, blocks: Sequence[relax.BindingBlock]) -> None:
        super().__init__()
        home = {b.var: n for n, block in enumerate(blocks) for b in block.bindings}
        self.shared = {
            leaf: relax.Var(leaf.name, leaf.ty)
            for n, block in enumerate(blocks)
            for b in block.bindings
            for leaf in leaves(b.value)
            if isinstance(leaf, relax.DataflowVar) and home.get(leaf, n) != n
        }

    def visit_dataflow_var_def_(self, var: Expr) -> Expr:
        return self.shared.get(var, var)

    def visit_dataflow_var_(self, var: Expr) -> Expr:
        return self.shared.get(var, var)
