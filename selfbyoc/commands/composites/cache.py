"""`python -m selfbyoc cache`: what the compile cache holds, and emptying it."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from ...codegen.cache.place import folder
from ...codegen.cache.store import LIMIT, Entry, Store
from ..console import PlainTable
from ..tables import target_text


@dataclass(frozen=True)
class Request:
    """What the command line asks."""

    clear: bool = False


def show(console: Console, asked: Request) -> None:
    """Print the kernels by composite, or drop all entries."""
    place = folder()
    if place is None:
        console.print("the compile cache is off (SELFBYOC_CACHE)")
        return
    store = Store(place)
    if asked.clear:
        console.print(f"dropped {store.clear()} entries of {place}")
        return
    found = store.entries()
    kernels = [entry for entry in found if not entry.about.get("note")]
    console.print(_table(kernels))
    size = sum(entry.size for entry in found)
    console.print(f"{place}: {size / 1e6:.1f} MB of at most {LIMIT / 1e6:.0f} MB")


def _table(kernels: list[Entry]) -> Table:
    table = PlainTable("composite", "generation", "target", "kernels", "KB")
    groups: dict[tuple[str, str, str], list[Entry]] = {}
    for entry in kernels:
        names = ("composite", "generation", "target")
        composite, generation, target = (str(entry.about.get(n, "")) for n in names)
        groups.setdefault((composite, generation, target_text(target)), []).append(entry)
    for key, entries in sorted(groups.items()):
        table.add_row(*key, str(len(entries)), f"{sum(e.size for e in entries) / 1e3:.0f}")
    return table
