"""What TVM itself cannot do, in one place: a case that ends so is counted, and is no finding.

What TVM alone refuses, too, needs no entry: it is asked whenever ours raises, crashes or differs.
Here is only what TVM does to our build and not to its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .._tvm import GENERATION


@dataclass(frozen=True)
class Limit:
    """A limit of one generation: what the error says, and why it is TVM's."""

    generation: str
    text: str  # a regular expression
    why: str


LIMITS: tuple[Limit, ...] = ()


def limit_of(text: str) -> Limit | None:
    """The limit that an error's text is, on the generation at hand."""
    for limit in LIMITS:
        if limit.generation == GENERATION and re.search(limit.text, text):
            return limit
    return None
