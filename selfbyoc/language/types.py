"""What TVM's values are called in signatures. TVM ships no types: these say what is meant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

Tensor: TypeAlias = Any  # te.Tensor
Expr: TypeAlias = Any  # an element: a PrimExpr of TensorIR
Schedule: TypeAlias = Any  # tir.Schedule, s_tir.Schedule
Block: TypeAlias = Any  # BlockRV, SBlockRV: a block in a schedule
Loop: TypeAlias = Any  # LoopRV
PrimFunc: TypeAlias = Any
IRModule: TypeAlias = Any
Target: TypeAlias = Any
Shape: TypeAlias = Sequence[int]
Attrs: TypeAlias = Mapping[str, Any]  # of an op, by the vocabulary's names
