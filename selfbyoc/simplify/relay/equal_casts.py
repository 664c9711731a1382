"""Relay: equal casts of integers as one. `relay.quantize` writes one for each reader of a value,
and a kernel then could only write what all of them read: four bytes where one is wanted.
"""

from __future__ import annotations

from ...ir.rewriting import Editor, Made, dtype
from ...tvm.types import Expr


class EqualCasts:
    """Of one value to one dtype."""

    def __init__(self) -> None:
        self.made: dict[tuple[Expr, str], Expr] = {}

    def __call__(self, made: Made, to: Editor) -> Expr | None:
        """A cast that was made before."""
        if made.name != "cast" or "int" not in dtype(to, made.args[0]):
            return None
        wanted = str(made.raw["dtype"])
        if "int" not in wanted:
            return None
        key = made.args[0], wanted
        if key not in self.made:
            self.made[key] = to.again(made, made.args)
        return self.made[key]
