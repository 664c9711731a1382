"""What a report keeps of each composite that was asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .outline import Outline, root_kinds

if TYPE_CHECKING:
    from .composite import Composite


@dataclass(frozen=True)
class Declared:
    """A composite's name and the outline of its pattern."""

    name: str
    why: str
    roots: tuple[str, ...]  # the kinds of op that the pattern can end in
    kinds: tuple[str, ...]  # all kinds of op in it
    depth: int  # the most ops after one another; of what may be repeated, the fewest
    before: tuple[tuple[str, str], ...]  # (kind, kind of an op that is computed from it)
    grows: bool = False  # whether any number of ops may be in it

    def can_hold(self, kind_a: str, kind_b: str, in_order: bool) -> bool:
        """Whether the pattern has both kinds; `in_order`: the second computed from the first."""
        if in_order:
            return (kind_a, kind_b) in self.before
        return kind_a in self.kinds and kind_b in self.kinds


def declared(composite: Composite) -> Declared:
    """The outline of a composite."""
    outline = Outline(composite.roots)
    return Declared(
        composite.name,
        composite.why,
        tuple(sorted(set().union(*map(root_kinds, composite.roots)))),
        tuple(sorted(set().union(*(outline.below[root] for root in composite.roots)))),
        max(outline.depth[root] for root in composite.roots),
        tuple(sorted(outline.pairs())),
        composite.grows,
    )
