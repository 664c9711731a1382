"""What a kernel of symbolic sizes is made of: its functions, and which of them a size takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...tvm.dispatch import Callee, Images
from ...tvm.types import PrimExpr, PrimFunc
from .images import Group


@dataclass(frozen=True)
class Part:
    """A function of a kernel; the shapes by which it knows the parameters, where those are not the
    kernel's, and which images it takes.
    """

    func: PrimFunc
    shapes: Sequence[Sequence[Any]] | None = None
    group: Group | None = None

    def callee(self, name: str) -> Callee:
        """How the kernel calls it, by this name."""
        group = self.group or Group(0)
        return Callee(name, self.shapes, group.images, group.side_by_side)


@dataclass(frozen=True)
class Parts:
    """A kernel's functions, its parameters as those of an empty function, and which of the
    functions is called, as an expression of the parameters' sizes.
    """

    functions: list[Part]
    signature: PrimFunc
    which: PrimExpr
    checks: Sequence[tuple[Any, str]]  # what has to hold: of some sizes there is no kernel of 0
    images: Images | None = None
