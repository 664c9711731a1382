"""What values of TVM are called in signatures: TVM ships no types, and two TVMs have the same
value in different modules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

# Graphs: of relay, relax
IRModule: TypeAlias = Any
Expr: TypeAlias = Any  # an expression of a graph: a call, a variable, a constant, a tuple
Function: TypeAlias = Any  # of a graph
Binding: TypeAlias = Any  # relax: a variable and what it stands for
BlockBuilder: TypeAlias = Any  # relax
Op: TypeAlias = Any
AttrsNode: TypeAlias = Any  # an op's attributes as TVM keeps them
Type: TypeAlias = Any  # TensorType, TupleType, ...
Span: TypeAlias = Any  # of a source: what an expression comes from
DFPattern: TypeAlias = Any  # relay.dataflow_pattern, relax.dpl

# Loops: of tir, tirx, s_tir
PrimFunc: TypeAlias = Any
PrimExpr: TypeAlias = Any  # an element or an index; a Python number may stand for one
PrimVar: TypeAlias = Any
Stmt: TypeAlias = Any
TirNode: TypeAlias = Any  # a statement or an expression
Buffer: TypeAlias = Any
Tensor: TypeAlias = Any  # te.Tensor
TeOperation: TypeAlias = Any
IterVar: TypeAlias = Any
Range: TypeAlias = Any
Schedule: TypeAlias = Any
Block: TypeAlias = Any  # BlockRV, SBlockRV: a block in a schedule
Loop: TypeAlias = Any  # LoopRV
Stage: TypeAlias = Any  # a tensor where it is computed, its block where it is scheduled
Trace: TypeAlias = Any
Instruction: TypeAlias = Any  # of a trace
Analyzer: TypeAlias = Any
TuneContext: TypeAlias = Any  # of MetaSchedule
ScheduleRule: TypeAlias = Any  # of MetaSchedule, dlight
CostModel: TypeAlias = Any  # of MetaSchedule
Intrinsic: TypeAlias = Any  # TensorIntrin
Pass: TypeAlias = Any  # over a module, and what is told of it

# What runs
Target: TypeAlias = Any
NDArray: TypeAlias = Any  # a tensor in memory, of TVM or of NumPy
Module: TypeAlias = Any  # a runtime module
Executable: TypeAlias = Any  # what a whole model is compiled to
PackedFunc: TypeAlias = Any
Session: TypeAlias = Any  # of RPC

Shape: TypeAlias = Sequence[int]
Attr: TypeAlias = Any  # of an op or a target: a number, a text, a tuple of these; None
Attrs: TypeAlias = Mapping[str, Attr]  # by name
