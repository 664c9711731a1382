"""Ctrl-C where TVM is on the stack: a KeyboardInterrupt, whatever TVM makes of it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C meanwhile ends in a KeyboardInterrupt.

    Raised in a function that C++ calls, it comes out of 0.27 as an empty RuntimeError, and 0.17
    prints it and goes on. Somebody else's handler of the signal is left alone.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    asked = False

    def stop(number: int, frame: Any) -> None:
        nonlocal asked
        asked = True
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, stop)
    try:
        yield
    except BaseException as err:
        if asked and not isinstance(err, KeyboardInterrupt):
            raise KeyboardInterrupt from err
        raise
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if asked:
        raise KeyboardInterrupt
