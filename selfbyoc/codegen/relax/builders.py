"""Relax's stack of builders: TVM keeps one for a process, and each thread needs its own."""

from __future__ import annotations

import threading
from typing import Any

from tvm import relax

from ...tvm.types import BlockBuilder


class _OwnStack(threading.local):
    """A list that each thread sees empty, and fills for itself."""

    def __init__(self) -> None:
        self.items: list[Any] = []

    def append(self, item: BlockBuilder) -> None:
        """Put one on top."""
        self.items.append(item)

    def pop(self) -> BlockBuilder:
        """Take the top one off."""
        return self.items.pop()

    def __getitem__(self, place: int) -> BlockBuilder:
        return self.items[place]

    def __len__(self) -> int:
        return len(self.items)


def builders_of_each_thread() -> None:
    """The stack of BlockBuilders that are writing a function, one for each thread.

    0.27 has one for the process: of two threads that write models (or import them, or partition)
    one gets the other's builder from `BlockBuilder.current()`, and an empty AssertionError. A lock
    of ours would not hold back what a user's own thread imports meanwhile.
    """
    if isinstance(relax.BlockBuilder._stack, _OwnStack):
        return
    stack = _OwnStack()
    stack.items.extend(relax.BlockBuilder._stack)  # imported while this thread writes a function
    relax.BlockBuilder._stack = stack
