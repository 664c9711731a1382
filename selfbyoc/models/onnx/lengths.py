"""Recurrent layers over sequences of several lengths in one batch.

Steps after the end are computed too and hidden. A reverse direction begins at the end of each
sequence: it is a forward one over the sequences turned round.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .build import Folding


class Lengths:
    """The nodes for a batch whose sequences have these `lengths` [batch]."""

    def __init__(
        self,
        nodes: Folding,
        lengths: str,
        sizes: Sequence[str],
        sides: Sequence[bool],
        dtype: np.dtype,
        of_one: Callable[[str, int], list[str]],
    ) -> None:
        """`sizes`: of the longest sequence, and of the batch; `sides`: whether each direction is a
        reverse one; `of_one`: gates and a direction's number -> its layer's results, forward.
        """
        self.nodes, self.sides, self.dtype, self.of_one = nodes, sides, dtype, of_one
        self.lengths = nodes.cast(lengths, np.int64)
        self.rows, self.batch = sizes

    def called(self, gates: str, states: Sequence[str]) -> tuple[list[str], list[str]]:
        """The results over all steps, zeros after the ends; and the last ones."""
        nodes = self.nodes
        steps, lengths = (
            nodes.unsqueeze(nodes.range(self.rows), 1),
            nodes.unsqueeze(self.lengths, 0),
        )
        self.inside = nodes("Less", steps, lengths)
        turned = nodes("Sub", nodes("Sub", lengths, np.int64(1)), steps)
        self.turned = nodes("Where", self.inside, turned, self._like(steps, turned))
        sides = [self._one(gates, states, d, back) for d, back in enumerate(self.sides)]
        whole = [nodes.concat([s[0][n] for s in sides], 1) for n in range(len(sides[0][0]))]
        last = [nodes.concat([s[1][n] for s in sides], 0) for n in range(len(sides[0][1]))]
        return whole, last

    def _one(
        self, gates: str, states: Sequence[str], d: int, back: bool
    ) -> tuple[list[str], list[str]]:
        """Of one direction: [length, 1, batch, units] and [1, batch, units] of each result."""
        nodes = self.nodes
        found = self.of_one(self._turned(gates) if back else gates, d)
        flat = [nodes.squeeze(value, 1) for value in found]
        firsts = [nodes.squeeze(nodes.cut(s, 0, d, d + 1), 0) for s in states[: len(flat)]]
        last = [self._ends(value, first) for value, first in zip(flat, firsts, strict=True)]
        flat = [self._turned(value) if back else value for value in flat]
        zero = nodes.constant(np.zeros((), self.dtype))
        inside = nodes.unsqueeze(self.inside, 2)
        hidden = [nodes("Where", inside, value, zero) for value in flat]
        return [nodes.unsqueeze(v, 1) for v in hidden], [nodes.unsqueeze(v, 0) for v in last]

    def _turned(self, values: str) -> str:
        """[length, batch, n] with each sequence in the opposite order."""
        return self._picked(values, self.turned)

    def _picked(self, values: str, steps: str) -> str:
        """Of each sequence the steps [n, batch]."""
        nodes = self.nodes
        batch = self._like(nodes.unsqueeze(nodes.range(self.batch), 0), steps)
        places = nodes.concat([nodes.unsqueeze(steps, 2), nodes.unsqueeze(batch, 2)], 2)
        return nodes("GatherND", values, places)

    def _ends(self, values: str, first: str) -> str:
        """[batch, units] after the last step of each; of an empty sequence what it began with."""
        nodes = self.nodes
        steps = nodes("Max", nodes("Sub", self.lengths, np.int64(1)), np.int64(0))
        last = nodes.squeeze(self._picked(values, nodes.unsqueeze(steps, 0)), 0)
        is_empty = nodes.unsqueeze(nodes("Equal", self.lengths, np.int64(0)), 1)
        return nodes("Where", is_empty, first, last)

    def _like(self, x: str, like: str) -> str:
        """Broadcast to the shape of another value of int64."""
        return self.nodes("Add", x, self.nodes("Mul", like, np.int64(0)))
