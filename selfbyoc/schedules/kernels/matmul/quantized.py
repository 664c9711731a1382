"""A product of levels that are both computed: words of two levels, on the plan of floats over half
the depth.

left    [batch of x, row, k]                 words of x
right   [batch of y, column, k]              words of y, where its depth lies together
panels  [batch of y, panel, k, column]       words of y

A word holds levels less their zero point, -255 to 255, so that nothing is corrected behind a sum:
both sides have a zero point, and of two words of bytes each would be multiplied by the sums of the
other side.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from ....codegen.info.ops import Ops, OpView
from ....language.decisions import is_symbolic
from ....language.kernel import Kernel
from ....machine import Machine
from ....tvm import te, tir
from ....tvm.own_ops import LEVELS_OF, PAIRS, dot
from ....tvm.types import PrimExpr, Schedule, Tensor
from ...steps.faults import Faults, unlike
from ...steps.tensors import View
from ..pairs import machine_of_pairs, word_along
from ..words import only, words_of
from .compute import MatmulStages, Sides, panels_of, result_of, sums_of
from .plan import MatmulPlan, alone, chosen, usual
from .schedule import of_words

WORD = LEVELS_OF[PAIRS]


@dataclass(frozen=True)
class QuantizedMatmulPlan:
    """The plan of a product of words."""

    product: MatmulPlan
    axes: tuple[int, int]  # of x and of y, which is their depth
    in_vectors: bool  # whether a row of words is made in vectors; of symbolic sizes LLVM makes them

    def __str__(self) -> str:
        return f"{self.product}, of words of {WORD}"

    def faults(self, ops: Ops, cpu: Machine) -> Faults:
        """Of the product of words that it is."""
        matmul, axes = _product_of(ops), _axes(ops)
        yield from unlike("axes of the depth", self.axes, axes)
        of_words = alone(matmul, words_of(_depth(ops), WORD), axes[0] == -2)
        yield from self.product.faults(of_words, machine_of_pairs(cpu))


def _product_of(ops: Ops) -> OpView:
    return next(iter([*ops.of("batch_matmul"), *ops.of("dense")]))


def _axes(ops: Ops) -> tuple[int, int]:
    """Which axis of x and of y the depth is: a dense layer has it last in both. A transpose may be
    before either.
    """
    matmul = _product_of(ops)
    turned = {ops.packing(call, 0).arg for call in ops.of("transpose")}
    is_last = [True, True]
    if matmul.kind == "batch_matmul":
        is_last = [not matmul.attrs["transpose_a"], matmul.attrs["transpose_b"]]
    found = [
        -1 if last != (side in turned) else -2 for side, last in zip("xy", is_last, strict=True)
    ]
    return found[0], found[1]


def _depth(ops: Ops) -> int:
    matmul = _product_of(ops)
    is_turned = matmul.kind == "batch_matmul" and matmul.attrs["transpose_a"]
    return int(matmul.inputs[0][0][-2 if is_turned else -1])


def plan(ops: Ops, machine: Machine) -> QuantizedMatmulPlan:
    """That of a float product of as many words, whose right side is laid out."""
    matmul = _product_of(ops)
    depth = words_of(_depth(ops), WORD)
    found = usual(matmul.outputs[0][0], depth, True, machine_of_pairs(machine))
    known = not any(is_symbolic(extent) for shape, _ in matmul.inputs for extent in shape[-2:])
    return QuantizedMatmulPlan(chosen(matmul.name, found), _axes(ops), known)


def _words(x: Tensor, zero: Tensor, axis: int, last: PrimExpr | None) -> View:
    """Levels less their zero point as words along an axis; `last` as of `word_along`."""
    at, size = axis + len(x.shape), int(x.shape[axis])
    point = only(zero).astype("int32")

    def word(*index: PrimExpr) -> PrimExpr:
        def level(place: PrimExpr) -> PrimExpr:
            return x(*index[:at], place, *index[at + 1 :]).astype("int32") - point

        return word_along(level, index[at], size, last)

    shape = [*x.shape[:at], words_of(size, WORD), *x.shape[at + 1 :]]
    return View(shape, "int32", word)


def compute(
    x: Tensor,
    x_scale: Tensor,
    x_zero: Tensor,
    y: Tensor,
    y_scale: Tensor,
    y_zero: Tensor,
    *,
    ops: Ops,
    plan: QuantizedMatmulPlan,
) -> MatmulStages:
    """The exact sums, then both scales while a tile is in registers."""
    matmul, found = _product_of(ops), plan.product
    of_x, of_y = plan.axes
    left = _staged(_words(x, x_zero, of_x, None), "left")
    right: Tensor | View = _words(y, y_zero, of_y, tir.const(0, "int32"))
    right = _staged(right, "right") if of_y == -1 else right
    sides = Sides(left, right, of_x == -2, of_y == -1)
    panels = panels_of(sides, matmul.name, found)
    sums = sums_of(sides, panels, matmul.name, found, partial(dot, PAIRS))

    def scaled(total: PrimExpr) -> PrimExpr:
        return total.astype("float32") * (only(x_scale) * only(y_scale))

    result = result_of(sums, matmul.outputs[0][0], matmul.name, found, scaled)
    staged = None if isinstance(right, View) else right
    return MatmulStages(panels, sums, result, left, staged)


def _staged(words: View, name: str) -> Tensor:
    return te.compute(words.shape, words, name=f"{name}_words")


def schedule(sch: Schedule, stages: MatmulStages, plan: QuantizedMatmulPlan) -> None:
    """Of words."""
    of_words(sch, stages, plan.product, plan.in_vectors)


QUANTIZED_MATMUL = Kernel(plan, compute, schedule)
