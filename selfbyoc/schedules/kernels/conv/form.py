"""What a form of convolution is: a plan of its own, and four functions over it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ....codegen.elementwise import Widened, staged
from ....tvm.types import Attrs, Block, Shape, Tensor
from ...steps.images import Work
from .lanes import Lanes, Reader, reader
from .operands import FLOATS, Operands


def in_floats(weight: Tensor, name: str) -> tuple[Tensor, Tensor | None]:
    """A weight, of halves in a stage of floats, and that stage: for a form that reads it element by
    element, where a conversion of each would take as long as the products.
    """
    if not isinstance(weight, Widened):
        return weight, None
    floats = weight.stage(name)
    return floats, floats


@dataclass(frozen=True, eq=False)
class Conv2d:
    """A convolution to compute: of an image [N, C, H, W] and of a weight that is packed."""

    x: Any
    weight: Any
    attrs: Attrs
    out: Shape
    name: str
    operands: Operands = FLOATS

    def staged(self) -> Conv2d:
        """The same with a stage of its own for what is computed of the image first: for a form that
        reads it more than once.
        """
        return replace(self, x=staged(self.x))

    def in_floats(self, name: str = "floats") -> tuple[Conv2d, Tensor | None]:
        """The same, its weight so."""
        weight, floats = in_floats(self.weight, f"{self.name}_{name}")
        return replace(self, weight=weight), floats

    def reader(self, p: Lanes) -> tuple[Reader, Tensor | None]:
        """What reads the image under a tap of the window, and the padded copy that it reads."""
        if self.operands.columns is not None:
            return self.operands.columns.reader(self.x, p, self.attrs, self.name)
        return reader(self.x, p, self.attrs, self.operands.outside(self.x), self.name)


def nothing_stays(work: Work, stages: object, plan: object) -> set[str]:
    """Of a form whose stages are all sums, or copies for a window."""
    return set()


def image_copies(stages: Any) -> list[Block]:
    """The one copy of a form, if it makes one."""
    return [] if stages.copy is None else [stages.copy]


@dataclass(frozen=True)
class Form:
    """One way to compute a convolution.

    plan      the type of its plans
    pack      `pack(weight, plan, groups)` of [O, I, H, W]
    compute   `compute(conv, plan)` -> a dataclass of stages by role, one of them `result`
    schedule  `schedule(work, stages, plan)`
    stays     `stays(work, stages, plan)` -> the names of stages that would be inlined, and must not
              be
    copies    `copies(stages)` -> those that lay the image out; the stage `copy`, if there is one
    """

    plan: type
    pack: Callable[[Tensor, Any, int], Tensor]
    compute: Callable[[Conv2d, Any], Any]
    schedule: Callable[[Work, Any, Any], None]
    stays: Callable[[Work, Any, Any], set[str]] = nothing_stays
    copies: Callable[[Any], list[Block]] = image_copies
