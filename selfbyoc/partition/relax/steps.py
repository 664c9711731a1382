"""Relax: the steps of loops, functions that main does not hold. Each is partitioned as the main of
a module of its own, and put back.
"""

from __future__ import annotations

from collections.abc import Mapping

from tvm import relax

from ...simplify.relax.exprs import STEP, steps_of
from ...tvm import tvm
from ...tvm.types import TirNode
from . import _Swap, external_functions


def apart(mod: tvm.IRModule) -> dict[str, tvm.IRModule]:
    """Name of each step -> a module whose main it is."""
    return {name: _alone(mod, name) for name in steps_of(mod)}


def _alone(mod: tvm.IRModule, name: str) -> tvm.IRModule:
    """The other functions stay, for it may call them, and none of them is a step there. Its name
    is part of its symbols: two loops may differ in their weights alone.
    """
    func = mod[name].with_attr(STEP, name).with_attr("global_symbol", "main")
    steps = steps_of(mod)
    others = {
        var: other.without_attr(STEP) if var.name_hint in steps else other
        for var, other in mod.functions.items()
        if var.name_hint not in ("main", name)
    }
    return tvm.IRModule({**others, tvm.ir.GlobalVar("main"): func})


def with_steps(mod: tvm.IRModule, parts: Mapping[str, tvm.IRModule]) -> tvm.IRModule:
    """The module with these steps, partitioned, and what they call."""
    for name, part in parts.items():
        builder = relax.BlockBuilder(mod)
        functions = external_functions(part)
        known = {gv.name_hint: gv for gv in mod.functions if gv.name_hint not in functions}
        known |= {each: builder.add_func(func, each) for each, func in functions.items()}
        done = builder.get()
        step = _Swap(known, {}).visit_expr(part["main"])
        step = step.without_attr("global_symbol").with_attr(STEP, name)
        done.update_func(done.get_global_var(name), step)
        for key, value in (mod.attrs or {}).items():
            done = done.with_attr(key, value)
        mod = done
    return mod


def kernels(mod: tvm.IRModule) -> set[str]:
    """The external functions that steps call."""
    found: set[str] = set()

    def visit(node: TirNode) -> None:
        if isinstance(node, tvm.ir.GlobalVar):
            found.add(node.name_hint)

    for step in steps_of(mod).values():
        relax.analysis.post_order_visit(step, visit)
    return found & set(external_functions(mod))
