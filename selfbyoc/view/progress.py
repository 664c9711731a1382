"""What takes a while: said on a terminal while it lasts, elsewhere in a line after two seconds."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape

PATIENCE = 2.0  # seconds


@contextmanager
def step(console: Console, text: str) -> Iterator[None]:
    """Around a piece of work that `text` names, as `building model.onnx`."""
    if console.is_terminal:
        with console.status(escape(text)):
            yield
        return
    timer = threading.Timer(PATIENCE, lambda: print(f"{text} ...", file=sys.stderr, flush=True))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
