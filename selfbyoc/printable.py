"""Text of others, as a terminal or a page may show it: what would steer it is written out, and what
a library prints unasked is not there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

# Control characters of ASCII and Latin-1 (escape sequences begin with one), what breaks lines
# elsewhere, what reverses the direction of writing or is not seen, and halves of characters.
_STEERING = "\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff"
_IN_TEXT = re.compile(f"[{_STEERING}]")
_IN_NAME = re.compile(f"[\t\n{_STEERING}]")
_LONGEST = 200  # of a name


def shown(text: str) -> str:
    """Lines with `\\x1b` for what is no character to be seen."""
    return _IN_TEXT.sub(_escaped, text)


def counted(count: int, noun: str) -> str:
    """`1 kernel`, `3 kernels`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def shown_name(text: str) -> str:
    """A name on one line, cut off where it fills the screen."""
    cut = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
    return _IN_NAME.sub(_escaped, cut)


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


@contextmanager
def quiet() -> Iterator[None]:
    """No stderr, not even of libraries in C."""
    saved = os.dup(2)
    try:
        with open(os.devnull, "w", encoding="utf-8") as null:
            os.dup2(null.fileno(), 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
