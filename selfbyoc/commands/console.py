"""The terminal: rich's, which shows what others wrote without obeying it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, OverflowMethod, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from ..printable import shown
from .progress import room


class SafeConsole(Console):
    """Rich drops a few control characters of text; the escape character is none of them."""

    def print(self, *objects: object, **options: Any) -> None:
        """As rich does, above the line that says what takes a while."""
        with room():
            super().print(*objects, **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """The segments: rich's own control codes, and text without any."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(shown(segment.text), segment.style)


class PlainTable(Table):
    """A table whose title and cells are what they say: a name in brackets is no style."""

    def __init__(self, *headers: str, title: str | None = None, **options: Any) -> None:
        super().__init__(*headers, title=None if title is None else _plain(title), **options)

    def add_column(self, *args: Any, overflow: OverflowMethod = "fold", **options: Any) -> None:
        """One more column; a name that is too long goes on in the next line."""
        super().add_column(*args, overflow=overflow, **options)

    def add_row(self, *cells: RenderableType | None, **options: Any) -> None:
        """One more row."""
        super().add_row(*map(_plain, cells), **options)


def within(console: Console, line: str) -> str:
    """A line on a terminal that is narrower: broken at words, what follows farther in."""
    if not console.is_terminal or len(line) <= console.width:
        return line
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    return "\n".join(textwrap.wrap(line, console.width, subsequent_indent=indent))


def _plain(cell: Any) -> Any:
    return Text(shown(cell)) if isinstance(cell, str) else cell
