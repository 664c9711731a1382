"""The tag of `te`'s ops under which TOPI computes: TVM keeps one for a process, and each thread
needs its own.
"""

from __future__ import annotations

import threading
from typing import Any

from tvm.te.tag import TagScope


class _Here(threading.local):
    scope: Any = None


_here = _Here()


def _current(_: type) -> Any:
    if _here.scope is not None:
        _here.scope.accessed = True
    return _here.scope


def _enter(scope: Any) -> Any:
    if _here.scope is not None:
        raise ValueError("nested op_tag is not allowed for now")  # as TVM's own
    _here.scope = scope
    return scope


def _exit(*_: object) -> None:
    _here.scope = None


def tags_of_each_thread() -> None:
    """Of two that threads open at once the later is a "nested op_tag" (both TVMs), and what other
    threads compute meanwhile is tagged with the first.
    """
    TagScope.get_current = classmethod(_current)
    TagScope.__enter__, TagScope.__exit__ = _enter, _exit
