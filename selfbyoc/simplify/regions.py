"""A convolution whose taps lie far apart, in regions of its result: each with those taps alone that
meet the image there.

    33 pixels, 3 taps 24 apart, padded by 24:   0..8   taps 1, 2
                                                9..23  tap  1
                                               24..32  taps 0, 1

Everywhere else a tap multiplies zeros of the padding: 99 products along this axis, where 51 count,
and nearly four times the work of both axes. Networks that label each pixel (DeepLab) do so at three
dilations at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from ..ir.rewriting import Editor, Made
from ..tvm.types import Expr
from .windows import Convolution, Side, convolution

WORTH = 0.7  # of the products: parts of the image are copied, and results joined
THIN = 4  # a region of fewer places shares the taps of its neighbour
MANY = 1 << 24  # products by one image that are worth a kernel for each region


@dataclass(frozen=True)
class Region:
    """Places of a window along one axis, and the taps that meet the image at some of them."""

    places: range
    taps: range

    @property
    def products(self) -> int:
        """Along this axis."""
        return len(self.places) * len(self.taps)

    def joined(self, other: Region) -> Region:
        """This one and the next."""
        first, last = min(self.taps.start, other.taps.start), max(self.taps.stop, other.taps.stop)
        return Region(range(self.places.start, other.places.stop), range(first, last))

    def image(self, side: Side) -> tuple[range, int, int]:
        """The part of the image that it reads, and how far that is padded at both ends."""
        first = side.reads(self.taps[0], self.places[0])
        last = side.reads(self.taps[-1], self.places[-1]) + 1
        part = range(max(0, first), min(side.extent, last))
        return part, part.start - first, last - part.stop


def regions_of(side: Side) -> list[Region]:
    """An axis in regions; one alone where several would save little."""
    whole = Region(range(side.outputs), range(side.kernel))
    found: list[Region] = []
    for y in whole.places:
        met = [tap for tap in whole.taps if 0 <= side.reads(tap, y) < side.extent]
        if not met:
            return [whole]
        place = Region(range(y, y + 1), range(met[0], met[-1] + 1))
        if found and (found[-1].taps == place.taps or len(found[-1].places) < THIN):
            place = found.pop().joined(place)
        found.append(place)
    if len(found) > 1 and len(found[-1].places) < THIN:
        found[-2:] = [found[-2].joined(found[-1])]
    saves = sum(region.products for region in found) <= WORTH * whole.products
    return found if saves and len(found) > 1 else [whole]


def in_regions(made: Made, to: Editor) -> Expr | None:
    """A conv2d of a constant weight as several, their results joined."""
    read = convolution(made, to)
    if read is None:
        return None
    sides = read.window.sides
    rows, columns = map(regions_of, sides)
    products = read.weight.size * prod(side.outputs for side in sides)
    if len(rows) * len(columns) == 1 or products < MANY:
        return None
    down, across = read.axes
    bands = [_joined([_part(read, to, row, col) for col in columns], across, to) for row in rows]
    return _joined(bands, down, to)


def _part(read: Convolution, to: Editor, row: Region, column: Region) -> Expr:
    """One region's convolution."""
    tall, wide = read.window.sides
    (down, top, bottom), (across, left, right) = row.image(tall), column.image(wide)
    image = to.call(
        "strided_slice", read.made.args[0], axes=list(read.axes),
        begin=[down.start, across.start], end=[down.stop, across.stop], strides=[1, 1],
    )  # fmt: skip
    return read.with_taps(to, image, (row.taps, column.taps), (top, left, bottom, right))


def _joined(parts: Sequence[Expr], axis: int, to: Editor) -> Expr:
    return parts[0] if len(parts) == 1 else to.emit("concatenate", *parts, axis=axis)
