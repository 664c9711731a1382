"""A product of matrices that are both computed, of words of two bfloat16, where a model has it in
that dtype: the plan of floats over half of the depth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ....codegen.info.ops import Ops, OpView
from ....graph import OpCall
from ....language.decisions import for_every_size, is_symbolic
from ....machine import Machine
from ....tvm import te
from ....tvm.types import PrimExpr, Tensor
from ...steps.faults import Faults, unlike
from ...steps.tensors import View
from ..bfloat16 import HELD, LEAST_PRODUCTS, WORD, machine_of, steps_of, times, word_along
from .compute import MatmulStages, Sides, panels_of, result_of, sums_of
from .plan import MatmulPlan, alone, chosen, depth_of, usual


@dataclass(frozen=True)
class RoundedMatmulPlan:
    """The plan of a product of words."""

    product: MatmulPlan

    def __str__(self) -> str:
        return f"{self.product}, of words of {WORD} {HELD}"

    def faults(self, ops: Ops, cpu: Machine) -> Faults:
        """Of the product of words that it is."""
        (matmul,) = ops.of("batch_matmul")
        yield from unlike("of words", True, is_of_words(matmul, cpu))
        of_words = alone(matmul, steps_of(depth_of(matmul), True), matmul.attrs["transpose_a"])
        yield from self.product.faults(of_words, machine_of(cpu, True))


def is_of_words(matmul: OpView, cpu: Machine) -> bool:
    """Whether a product is of words: where the model has it in bfloat16, and each number that is
    rounded is multiplied often. What fits every size is of floats.
    """
    shapes = [shape for shape, _ in (*matmul.inputs, *matmul.outputs)]
    if for_every_size() or any(is_symbolic(extent) for shape in shapes for extent in shape):
        return False
    asked = matmul.attrs.get("may_round_to") == HELD and bool(cpu.products_of_bfloat16)
    return asked and min(shapes[-1][-2:]) >= LEAST_PRODUCTS and depth_of(matmul) > 1


def plan(matmul: OpView, machine: Machine) -> RoundedMatmulPlan:
    """That of a product of as many floats, whose right side is laid out."""
    depth = steps_of(depth_of(matmul), True)
    found = usual(matmul.outputs[0][0], depth, True, machine_of(machine, True))
    return RoundedMatmulPlan(chosen(matmul.name, found))


def compute(inputs: Sequence[Tensor], call: OpCall, plan: RoundedMatmulPlan) -> MatmulStages:
    """Words of x, and of y where its depth lies together, are stages."""
    x, y = inputs
    turned_x, by_rows = call.attrs["transpose_a"], call.attrs["transpose_b"]
    left, made = _stage(_words(x, -2 if turned_x else -1), "left"), plan.product
    right: Tensor | View = _words(y, -1 if by_rows else -2)
    staged = _stage(right, "right") if by_rows else None
    sides = Sides(left, right if staged is None else staged, turned_x, by_rows)
    panels = panels_of(sides, call.name, made)
    sums = sums_of(sides, panels, call.name, made, times(True))
    result = result_of(sums, call.outputs[0].shape, call.name, made)
    return MatmulStages(panels, sums, result, left, staged)


def _words(x: Tensor, axis: int) -> View:
    """Words along an axis."""
    at, size = axis + len(x.shape), int(x.shape[axis])

    def word(*i: PrimExpr) -> PrimExpr:
        return word_along(lambda place: x(*i[:at], place, *i[at + 1 :]), i[at], size)

    return View((*x.shape[:at], steps_of(size, True), *x.shape[at + 1 :]), "int32", word)


def _stage(words: View, name: str) -> Tensor:
    return te.compute(words.shape, words, name=f"{name}_words")
