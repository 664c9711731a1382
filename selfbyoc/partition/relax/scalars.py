"""Relax: a function of its own for each set of constants of one element.

FuseOpsByPattern makes one function of equal groups, with their constants as arguments. Which op a
group is may depend on those of one element: minimum(maximum(x, 0), c) is a clip to c. They are part
of what the function is (`tefuse.scalars`), so calls that pass others call another one. Scales are
not: a kernel is passed them (OpKind.passed).
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from tvm import relax

from ...codegen.attributes import is_passed
from ...codegen.hook import hook
from ...graph import OpGraph
from ...ir.relax import Constant
from ...tvm import constant_numpy, constant_tensor, tvm

# Position of an argument, its type and its bytes.
Scalars = tuple[tuple[int, str, bytes], ...]


def one_for_each_scalar(mod: tvm.IRModule, names: Iterable[str]) -> tvm.IRModule:
    """main with a copy of a function for each set of scalars that it is called with.

    f(a, 6), f(b, 1), f(c, 6)  ->  f(a, 6), f_s1(b, 1), f(c, 6)
    """
    return _OneForEach(mod, set(names)).done()


@relax.expr_functor.mutator
class _OneForEach(relax.PyExprMutator):
    def __init__(self, mod: tvm.IRModule, names: set[str]) -> None:
        super().__init__(tvm.IRModule(dict(mod.functions.items()), attrs=mod.attrs))
        self.mod, self.names = mod, names
        self.graphs: dict[str, OpGraph] = {}
        self.known: dict[str, dict[Scalars, tvm.ir.GlobalVar]] = {name: {} for name in names}

    def done(self) -> tvm.IRModule:
        main = self.visit_expr(self.mod["main"])
        if all(len(copies) < 2 for copies in self.known.values()):
            return self.mod
        self.builder_.update_func(self.mod.get_global_var("main"), main)
        return self.builder_.get()

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        if not isinstance(call.op, tvm.ir.GlobalVar) or call.op.name_hint not in self.names:
            return super().visit_call_(call)
        copies, key = self.known[call.op.name_hint], self._scalars(call)
        if key not in copies:
            copies[key] = self._copy(call.op, len(copies)) if copies else call.op
        return super().visit_call_(relax.Call(copies[key], call.args, call.attrs))

    def _scalars(self, call: relax.Call) -> Scalars:
        constants = ((i, a) for i, a in enumerate(call.args) if isinstance(a, Constant))
        ones = [(i, c) for i, c in constants if math.prod(constant_tensor(c).shape) == 1]
        arrays = [(i, constant_numpy(constant)) for i, constant in ones]
        graph = self._graph(call.op.name_hint) if arrays else None
        return tuple(
            (i, str(a.dtype), a.tobytes())
            for i, a in arrays
            if graph and not is_passed(graph, graph.inputs[i], a.item())
        )

    def _graph(self, name: str) -> OpGraph:
        if name not in self.graphs:
            self.graphs[name] = hook.read(self.mod[name])
        return self.graphs[name]

    def _copy(self, name: tvm.ir.GlobalVar, number: int) -> tvm.ir.GlobalVar:
        copied = relax.utils.copy_with_new_vars(self.mod[name])
        # Known under its own name: equal functions would be one again (BlockBuilder, 0.27).
        new = f"{name.name_hint}_s{number}"
        return self.builder_.add_func(copied.with_attr("global_symbol", new), new)
