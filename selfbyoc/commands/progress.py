"""What takes a while: after two seconds a line on stderr says what, where that is a terminal."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.spinner import Spinner

PATIENCE = 2.0  # seconds


class _Line:
    """A line that comes late, and makes room for what is printed."""

    def __init__(self, text: str, console: Console) -> None:
        self._spinner = Spinner("dots", escape(text))
        self._live = Live(self._spinner, console=console, transient=True, redirect_stdout=False)
        self._lock = threading.RLock()
        self._is_over = False
        self._timer = threading.Timer(PATIENCE, self._show)
        self._timer.daemon = True
        self._timer.start()

    def _show(self) -> None:
        with self._lock:
            if not self._is_over:
                self._live.start()

    def says(self, text: str) -> None:
        """Another text, from now on."""
        with self._lock:
            self._spinner.update(text=escape(text))

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Gone for so long."""
        with self._lock:
            was_shown = self._live.is_started
            self._live.stop()
            try:
                yield
            finally:
                if was_shown:
                    self._live.start()

    def end(self) -> None:
        """Gone for good."""
        with self._lock:
            self._is_over = True
            self._live.stop()
        self._timer.cancel()


_lines: list[_Line] = []  # that of each step that goes on, the innermost last


@contextmanager
def step(text: str) -> Iterator[Callable[[str], None]]:
    """Around a piece of work that `text` names, as `building model.onnx`; what is yielded changes
    the text. The line goes when the work is done.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda text: None
        return
    _lines.append(_Line(text, console))
    try:
        yield _lines[-1].says
    finally:
        _lines.pop().end()


@contextmanager
def room() -> Iterator[None]:
    """Around what prints on the same terminal: rich knows of no other console's line."""
    if not _lines:
        yield
        return
    with _lines[-1].hidden():
        yield
