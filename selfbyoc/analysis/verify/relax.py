"""Relax: the ops of an external function as TVM builds them without us."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from tvm import relax

from ...tvm import make_target, tensor, tvm
from ...tvm.types import Expr, IRModule


def _composite(func: relax.Function) -> tuple[relax.Function, list[int]]:
    """The composite function in an external one, and which parameter each of its own is.

    What a packed parameter goes through on the way (partition/finish.py) is looked through.
    """
    bound = {b.var: b.value for block in func.body.blocks for b in block.bindings}
    (call,) = (
        v
        for v in bound.values()
        if isinstance(v, relax.Call) and isinstance(bound.get(v.op), relax.Function)
    )

    def source(expr: Expr) -> Expr:
        while expr in bound:
            expr = bound[expr].args[0]
        return expr

    params = list(func.params)
    inner = bound[call.op]
    return inner, [next(i for i, p in enumerate(params) if p.same_as(source(a))) for a in call.args]


def subgraph(func: relax.Function, fixed: Mapping[int, np.ndarray]) -> tuple[IRModule, list[int]]:
    """The ops of an external function as a module of their own, `fixed` inputs (unpacked) as
    constants; -> it, and which input each parameter of its `main` is.
    """
    inner, positions = _composite(func)
    params = [p for i, p in zip(positions, inner.params, strict=True) if i in fixed]
    arrays = [tensor(np.asarray(fixed[i], order="C")) for i in positions if i in fixed]
    main = relax.Function(inner.params, inner.body, inner.ret_ty).with_attr("global_symbol", "main")
    mod = tvm.IRModule({"main": main})
    bind = relax.transform.BindParams("main", dict(zip(params, arrays, strict=True)))
    return bind(mod), [i for i in positions if i not in fixed]


def unfused(
    func: relax.Function, arrays: Sequence[np.ndarray], fixed: Mapping[int, np.ndarray]
) -> Callable[[Sequence[np.ndarray]], list[np.ndarray]]:
    """Build the ops one by one; -> a function of all inputs (unpacked, in order)."""
    inner, positions = _composite(func)
    main = relax.Function(inner.params, inner.body, inner.ret_ty).with_attr("global_symbol", "main")
    executable = tvm.compile(tvm.IRModule({"main": main}), make_target("llvm"))
    machine = relax.VirtualMachine(executable, tvm.cpu())

    def run(values: Sequence[np.ndarray]) -> list[np.ndarray]:
        found = machine["main"](*(tensor(np.asarray(values[i], order="C")) for i in positions))
        return [found.numpy()] if hasattr(found, "numpy") else [r.numpy() for r in found]

    return run
