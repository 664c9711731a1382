"""Inputs and outputs as a table on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table

from ...graph import type_text
from ...runtime.signature import Tensor
from ..console import PlainTable

MOST = 1000  # rows: rich takes a millisecond for two


def tensor_table(title: str, tensors: Sequence[Tensor], *more: tuple[str, list[str]]) -> Table:
    """Names and types, and further columns of one text a tensor."""
    table = PlainTable(
        title=f"\n{title}", title_justify="left", title_style="bold", show_edge=False,
        pad_edge=False,
    )  # fmt: skip
    table.add_column("name", overflow="fold")
    table.add_column("type", overflow="fold")
    for header, _ in more:
        table.add_column(header, overflow="fold")
    for n, (name, shape, dtype) in enumerate(tensors[:MOST]):
        extra: list[Any] = [texts[n] for _, texts in more]
        table.add_row(name, type_text(shape, dtype), *extra)
    if len(tensors) > MOST:
        table.add_row(f"and {len(tensors) - MOST:,} more", "", *("" for _ in more))
    return table
