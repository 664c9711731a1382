"""Relay: the ops of an external function as TVM builds them without us."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
from tvm import autotvm, relay
from tvm.contrib import graph_executor

from ...ir.relay.emit import constant
from ...ir.relay.walk import postorder
from ...tvm import tensor, tvm
from ...tvm.types import Expr, IRModule


def _composite(func: relay.Function) -> tuple[relay.Function, list[int]]:
    """The composite function in an external one, and which parameter each of its own is.

    What a packed parameter goes through on the way (partition/finish.py) is looked through.
    """
    (call,) = (
        e
        for e in postorder(func.body)
        if isinstance(e, relay.Call) and isinstance(e.op, relay.Function)
    )
    params = list(func.params)
    return call.op, [
        next(i for i, p in enumerate(params) if p.same_as(_source(a))) for a in call.args
    ]


def _source(expr: Expr) -> Expr:
    while isinstance(expr, relay.Call):
        expr = expr.args[0]
    return expr


@contextmanager
def _silent() -> Iterator[None]:
    """Without the remark that operators have not been tuned."""
    scope = autotvm.env.GLOBAL_SCOPE
    before, scope.silent = scope.silent, True
    try:
        yield
    finally:
        scope.silent = before


def subgraph(func: relay.Function, fixed: Mapping[int, np.ndarray]) -> tuple[IRModule, list[int]]:
    """The ops of an external function as a module of their own, `fixed` inputs (unpacked) as
    constants; -> it, and which input each parameter of its `main` is.
    """
    inner, positions = _composite(func)
    names = {i: p for i, p in zip(positions, inner.params, strict=True)}
    bound = {names[i]: constant(fixed[i]) for i in fixed if i in names}
    params = [p for p in inner.params if p not in bound]
    main = relay.Function(params, relay.bind(inner.body, bound))
    return tvm.IRModule.from_expr(main), [i for i in positions if names[i] not in bound]


def unfused(
    func: relay.Function, arrays: Sequence[np.ndarray], fixed: Mapping[int, np.ndarray]
) -> Callable[[Sequence[np.ndarray]], list[np.ndarray]]:
    """Build the ops one by one; -> a function of all inputs (unpacked, in order).

    `fixed` inputs are constants: QNN ops cannot be lowered otherwise.
    """
    mod, order = subgraph(func, {i: arrays[i] for i in fixed})
    # AlterOpLayout of TVM 0.17 changes what some graphs compute.
    with _silent(), tvm.transform.PassContext(opt_level=0, disabled_pass=["AlterOpLayout"]):
        lib = relay.build(mod, target="llvm")
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))

    def run(values: Sequence[np.ndarray]) -> list[np.ndarray]:
        for slot, i in enumerate(order):
            module.set_input(slot, tensor(np.asarray(values[i], order="C")))
        module.run()
        return [module.get_output(i).numpy() for i in range(module.get_num_outputs())]

    return run
