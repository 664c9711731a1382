"""What a slice reads of a value."""

from __future__ import annotations

from dataclasses import dataclass

from ..tvm.types import Expr


@dataclass(frozen=True)
class Cut:
    """A slice of a value: elements begin to end of an axis; `drops`: one, and the axis is gone."""

    of: Expr
    axis: int
    begin: int
    end: int
    drops: bool = False

    def on(self, value: Expr, axis: int, per: int = 1, drops: bool = False) -> Cut:
        """The same elements of what a value was made of, `per` of them for each."""
        return Cut(value, axis, self.begin * per, self.end * per, drops)
