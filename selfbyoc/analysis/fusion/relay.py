"""Relay: FuseOps after the passes that `relay.build` runs before it and that change what it sees.

AlterOpLayout is left out: it changes layouts, which is about schedules and not about fusion.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relay

from ...codegen.info.pattern_kind import name_of
from ...tvm.types import Expr
from .kernels import Fused, Made, element

_OPAQUE = 8  # what FuseOps takes an op for that has registered no kind


def fuse(mod: tvm.IRModule) -> tvm.IRModule:
    """The module with its kernels as primitive functions, as at opt_level 3."""
    passes = [
        relay.qnn.transform.CanonicalizeOps(), relay.transform.SimplifyInference(),
        relay.transform.CanonicalizeOps(), relay.transform.FoldConstant(),
        relay.transform.InferType(), relay.transform.FuseOps(3), relay.transform.InferType(),
    ]  # fmt: skip
    with tvm.transform.PassContext(opt_level=3):
        return tvm.transform.Sequential(passes)(mod)


def read(mod: tvm.IRModule) -> Fused:
    """The kernels of a fused module."""
    reader = _Reader()
    reader.value(mod["main"].body, None)
    return reader.fused


class _Reader:
    """Visits each expression once; a function is visited once for each call of it."""

    def __init__(self) -> None:
        self.fused = Fused()
        self.done: dict[Any, Any] = {}

    def value(self, expr: Expr, kernel: int | None) -> Made:
        if expr not in self.done:
            self.done[expr] = self._read(expr, kernel)
        return self.done[expr]

    def _read(self, expr: Expr, kernel: int | None) -> Made:
        if isinstance(expr, relay.Tuple):
            return [self.value(part, kernel) for part in expr.fields]
        if isinstance(expr, relay.TupleGetItem):
            return element(self.value(expr.tuple_value, kernel), expr.index)
        if not isinstance(expr, relay.Call):
            return None  # an argument of main, or a constant
        args = [self.value(arg, kernel) for arg in expr.args]
        if isinstance(expr.op, relay.Function):
            self.done.update(zip(expr.op.params, args, strict=True))
            return self.value(expr.op.body, self.fused.begin())
        assert kernel is not None, f"{expr.op.name}: FuseOps left it outside of functions"
        registered = expr.op.get_attr("TOpPattern")
        kind = name_of(_OPAQUE if registered is None else int(registered))
        return self.fused.call(str(expr.op.name).removeprefix("nn."), kind, kernel, args)
