"""How processes end: waited for, and if it takes too long, made to."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Callable


def ending(wait: Callable[[float], int], group: int, seconds: float) -> str:
    """How a process ended, in words; '' if well. Of one that did not, nothing is left."""
    try:
        status = wait(_until_ended(group, seconds))
    except BaseException as err:  # an interrupt too
        os.killpg(group, signal.SIGKILL)
        wait(seconds)
        if isinstance(err, subprocess.TimeoutExpired):
            return f"no answer within {seconds:g} s"
        raise
    if status < 0:
        return f"ended by {signal.strsignal(-status)} (signal {-status})"
    return f"status {status}" if status else ""


def _until_ended(pid: int, seconds: float) -> float:
    """Wait for a process, without looking at it again and again as Popen.wait does: most answers
    are there in 0.1 s; -> the seconds that it may still take.
    """
    start = time.monotonic()
    try:
        handle = os.pidfd_open(pid)
    except (AttributeError, OSError):  # no Linux, or an old one
        return seconds
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        poll.poll(seconds * 1000)
    finally:
        os.close(handle)
    return max(0.0, seconds - (time.monotonic() - start))


def waited(pid: int, seconds: float) -> int:
    """As Popen.wait, of a fork."""
    deadline = time.monotonic() + seconds
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            raise subprocess.TimeoutExpired("a fork", seconds)
        time.sleep(0.005)
