"""Where the windows over the channels of an image lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ....tvm.types import Attrs
from ...steps.faults import Faults, unlike

Pair = tuple[int, int]


@dataclass(frozen=True)
class Windows:
    """Pairs are (vertical, horizontal)."""

    image: Pair
    out: Pair
    window: Pair
    strides: Pair
    dilation: Pair
    before: Pair  # padding above and on the left

    def misplaced(
        self, image: Sequence[int], out: Sequence[int], window: Sequence[int], attrs: Attrs
    ) -> Faults:
        """What rows and columns of image, result and window, and the attributes say otherwise."""
        own = self.image, self.out, self.window, self.strides, self.dilation, self.before
        told = image, out, window, attrs["strides"], attrs["dilation"], attrs["padding"][:2]
        yield from unlike("the windows", own, tuple(map(tuple, told)))

    def reach(self, dim: int) -> int:
        """How far a window reaches from its first row or column."""
        return (self.window[dim] - 1) * self.dilation[dim]
