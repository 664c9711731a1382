"""What a long piece of work is at: its parts tell by name when they begin, whoever listens."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_listeners: ContextVar[tuple[Callable[[str], None], ...]] = ContextVar("selfbyoc_parts", default=())


def begins(part: str) -> None:
    """The next part begins, and the one before it is over."""
    for listener in _listeners.get():
        listener(part)


@contextmanager
def heard_by(listener: Callable[[str], None]) -> Iterator[None]:
    """Tell this one, too, of the parts of the work inside."""
    token = _listeners.set((*_listeners.get(), listener))
    try:
        yield
    finally:
        _listeners.reset(token)


class Times:
    """A listener: how many seconds each part took, in order. Parts that come again add up."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._part, self._since = "", 0.0

    def __call__(self, part: str) -> None:
        """A part begins; "": none does."""
        now = time.perf_counter()
        if self._part:
            self.seconds[self._part] = self.seconds.get(self._part, 0.0) + now - self._since
        self._part, self._since = part, now
