"""The plan of a product of matrices that are both computed: of floats, or of words."""

from __future__ import annotations

from ....codegen.info.ops import Ops
from ....machine import Machine
from . import plan, rounded
from .plan import MatmulPlan
from .rounded import RoundedMatmulPlan

Plan = MatmulPlan | RoundedMatmulPlan


def plan_matmul(ops: Ops, machine: Machine) -> Plan:
    """Of floats, or of words where the model has them and the CPU multiplies them faster."""
    (matmul,) = ops.of("batch_matmul")
    is_rounded = rounded.is_of_words(matmul, machine)
    return rounded.plan(matmul, machine) if is_rounded else plan.plan(ops, machine)
