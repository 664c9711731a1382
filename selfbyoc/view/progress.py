"""What takes a while: after two seconds a line on stderr says what, where that is a terminal."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.spinner import Spinner

PATIENCE = 2.0  # seconds


@contextmanager
def step(text: str) -> Iterator[None]:
    """Around a piece of work that `text` names, as `building model.onnx`. The line goes when the
    work is done; what is printed meanwhile, on stdout too, stands above it.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    both = sys.stdout.isatty()  # into a file nothing of stdout may get lost
    spinner = Spinner("dots", escape(text))
    line = Live(spinner, console=console, transient=True, redirect_stdout=both)
    timer = threading.Timer(PATIENCE, line.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()  # it may be starting the line now
        line.stop()
