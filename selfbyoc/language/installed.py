"""Composites of installed packages: what these name under the entry point `selfbyoc.composites`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points

from ..errors import RegistryError, ToolError, one_line
from ..ops.vocabulary import KINDS
from .composite import Composite

GROUP = "selfbyoc.composites"
_again: dict[str, list[str]] = {}  # of each offer, as a module is imported once


@dataclass(frozen=True)
class Offer:
    """What one entry point of a package names: a composite, or several."""

    package: str
    entry: EntryPoint

    def __str__(self) -> str:
        return f"package {self.package}, entry point {self.entry.name} = {self.entry.value}"

    def composites(self) -> list[Composite]:
        """They, imported. Raises ToolError where that fails, and RegistryError for what is none, or
        where an op that was declared before is declared anew: composites of others mean that one.
        """
        before = dict(KINDS)
        try:
            found = self.entry.load()
        except (Exception, SystemExit) as err:  # a package raises whatever it likes
            raise ToolError(f"{self}: importing it raised {one_line(err)}") from err
        again = [name for name, kind in before.items() if KINDS[name] is not kind]
        if ops := _again.setdefault(str(self), again):
            raise RegistryError(f"{self}: it declares {', '.join(ops)}, which was declared before")
        several = [found] if isinstance(found, Composite) else found
        if isinstance(several, (str, type)) or not isinstance(several, Iterable):
            raise RegistryError(f"{self}: expected a Composite or a list of them, found {found!r}")
        for each in (listed := list(several)):
            if not isinstance(each, Composite):
                raise RegistryError(f"{self}: expected a list of composites, found {each!r} in it")
        return listed


def offers() -> list[Offer]:
    """Of all packages, nothing of which is imported yet; in order of their names."""
    found = [Offer(_package(entry), entry) for entry in entry_points(group=GROUP)]
    return sorted(found, key=lambda offer: (offer.package.lower(), offer.entry.name))


def _package(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else "unknown"
