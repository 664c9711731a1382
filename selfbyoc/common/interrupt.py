"""Ctrl-C where TVM is on the stack: a KeyboardInterrupt, whatever TVM makes of it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_FFI, _CALLBACK = "/tvm/_ffi/", ("/tvm/_ffi/_ctypes/packed_func.py", "cfun")
_SOON = 0.01  # seconds
_asked = threading.Event()  # Ctrl-C came in the main thread, and is no KeyboardInterrupt yet


class Stopped(Exception):
    """Ctrl-C in a function that 0.17 calls. It hands errors on; a KeyboardInterrupt, which is none,
    ctypes prints and drops, and TVM goes on with a result that is not there: a crash.
    """


@contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C meanwhile ends in a KeyboardInterrupt.

    Raised in a function that C++ calls, it comes out of 0.27 as an empty RuntimeError; what 0.17
    makes of it is told above. Somebody else's handler of the signal is left alone.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    _asked.clear()
    again: list[threading.Timer] = []

    def stop(number: int, frame: FrameType | None) -> None:
        _asked.set()
        inner = _called_by_tvm(frame)
        if inner is None:
            raise KeyboardInterrupt
        if _FFI not in inner.f_code.co_filename:
            raise Stopped
        # In TVM's own lines around the function nobody would catch it. To this thread: a signal to
        # the timer's would not wake it where it waits.
        again.append(
            threading.Timer(_SOON, signal.pthread_kill, (threading.get_ident(), signal.SIGINT))
        )
        again[-1].start()

    signal.signal(signal.SIGINT, stop)
    try:
        yield
    except BaseException as err:  # whatever TVM made of it
        if _asked.is_set() and not isinstance(err, KeyboardInterrupt):
            raise KeyboardInterrupt from err
        raise
    finally:
        asked = _asked.is_set()
        _asked.clear()
        for timer in again:
            timer.cancel()
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if asked:
        raise KeyboardInterrupt


def stopped(err: BaseException | None) -> bool:
    """Whether Ctrl-C is the cause of an error, so that nobody should mend it and go on."""
    if _asked.is_set() and threading.current_thread() is threading.main_thread():
        return True  # 0.27 hands on an error that says nothing of it
    while err is not None and not isinstance(err, (Stopped, KeyboardInterrupt)):
        err = err.__cause__ or err.__context__
    return err is not None


def _called_by_tvm(frame: FrameType | None) -> FrameType | None:
    """The innermost function that 0.17 called from C++, TVM's own around it included."""
    inner = frame
    while frame is not None:
        code = frame.f_code
        if code.co_name == _CALLBACK[1] and code.co_filename.endswith(_CALLBACK[0]):
            return inner
        inner, frame = frame, frame.f_back
    return None
