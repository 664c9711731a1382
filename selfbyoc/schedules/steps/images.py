"""A schedule in the making, and questions about the images that its convolutions compute."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...tvm.types import Schedule
from .blocks import Facts
from .loops import Finish


@dataclass
class Work:
    """A schedule in the making: what is done last, and the names of the blocks that are done and
    of those that lay an image out for a convolution.
    """

    sch: Schedule
    finish: list[Finish] = field(default_factory=list)
    done: set[str] = field(default_factory=set)
    copies: set[str] = field(default_factory=set)


def image_of(work: Work, block: Facts) -> Facts | None:
    """The one elementwise reader of sums: no copy, and of no other image that is computed."""
    readers = block.consumers
    if len(readers) != 1 or readers[0].reduction or len(readers[0].spatial) != 4:
        return None
    alone = len(images(readers[0])) == 1 and readers[0].name not in work.copies
    return readers[0] if alone else None


def images(block: Facts) -> list[Facts]:
    """What it reads that is computed, factors for each channel aside, as of a batch norm."""
    return [producer for producer in block.producers if len(producer.shape) > 1]
