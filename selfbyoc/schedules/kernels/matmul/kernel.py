"""The kernel of a product of matrices that are both computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ....graph import OpCall
from ....language.kernel import Kernel
from ....tvm.types import Schedule, Tensor
from ...steps.blocks import others
from . import compute, rounded
from .compute import MatmulStages
from .plans import Plan, plan_matmul
from .rounded import RoundedMatmulPlan
from .schedule import of_words, product


def batch_matmul(inputs: Sequence[Tensor], call: OpCall, plan: Plan) -> MatmulStages:
    """By its plan."""
    if isinstance(plan, RoundedMatmulPlan):
        return rounded.compute(inputs, call, plan)
    return compute.batch_matmul(inputs, call, plan)


def schedule(sch: Schedule, stages: Mapping[str, MatmulStages], plan: Plan) -> None:
    """for product, in parallel: its panels; for panel: for tile: acc = 0; for k: acc += ...; the
    tile's elements of the result. Parts of the rows are tasks where products are too few.
    """
    (found,) = stages.values()
    if isinstance(plan, RoundedMatmulPlan):
        of_words(sch, found, plan.product, in_vectors=True)
    else:
        product(sch, found, plan, others(sch, found))


MATMUL = Kernel(plan_matmul, {"batch_matmul": batch_matmul}, schedule)
