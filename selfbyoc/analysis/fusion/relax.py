"""Relax: FuseOps after the passes that TVM's default pipeline runs before it."""

from __future__ import annotations

import re

import tvm
from tvm import relax

from ...codegen.info.pattern_kind import name_of
from ...tvm.types import Expr, Function
from .kernels import Fused, Made, element


def fuse(mod: tvm.IRModule) -> tvm.IRModule:
    """The module with its kernels as primitive functions, and lone ops as calls of PrimFuncs."""
    passes = [
        relax.transform.LegalizeOps(), relax.transform.AnnotateTIROpPattern(),
        relax.transform.FoldConstant(), relax.transform.FuseOps(),
    ]  # fmt: skip
    return tvm.transform.Sequential(passes)(mod)


def read(mod: tvm.IRModule) -> Fused:
    """The kernels of a fused module."""
    reader = _Reader(mod)
    reader.function(mod["main"], [None] * len(mod["main"].params), None)
    return reader.fused


class _Reader:
    """Evaluates functions: a variable's value is the op that computes it."""

    def __init__(self, mod: tvm.IRModule) -> None:
        self.mod = mod
        self.fused = Fused()

    def function(self, func: Function, args: list[Made], kernel: int | None) -> Made:
        known = dict(zip(func.params, args, strict=True))
        for block in func.body.blocks:
            for binding in block.bindings:
                known[binding.var] = self._value(binding.value, known, kernel)
        return self._value(func.body.body, known, kernel)

    def _value(self, expr: Expr, known: dict[Expr, Made], kernel: int | None) -> Made:
        if isinstance(expr, relax.Var):
            return known[expr]
        if isinstance(expr, relax.Tuple):
            return [self._value(part, known, kernel) for part in expr.fields]
        if isinstance(expr, relax.TupleGetItem):
            return element(self._value(expr.tuple_value, known, kernel), expr.index)
        if not isinstance(expr, relax.Call):
            return None  # a constant
        if isinstance(expr.op, tvm.ir.GlobalVar):
            args = [self._value(arg, known, kernel) for arg in expr.args]
            return self.function(self.mod[expr.op], args, self.fused.begin())
        assert str(expr.op.name) == "relax.call_tir", f"{expr.op.name} was not legalized"
        called, args = expr.args[0], self._value(expr.args[1], known, kernel)
        kind = name_of(int(self.mod[called].attrs["op_pattern"]))
        name = re.sub(r"\d+$", "", str(called.name_hint).removeprefix("tir_"))
        return self.fused.call(name, kind, self.fused.begin() if kernel is None else kernel, args)
