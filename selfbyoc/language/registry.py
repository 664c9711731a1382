"""Composites by name, in order of priority."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..errors import RegistryError, did_you_mean
from .composite import COMPILER, Composite


class Registry:
    """Composites by name; the order of adding is their priority."""

    def __init__(self, composites: Iterable[Composite] = ()) -> None:
        self._by_name: dict[str, Composite] = {}
        if isinstance(composites, Composite):
            raise RegistryError(f"expected a list of composites, found {composites.name} alone")
        for composite in composites:
            self.add(composite)

    def add(self, composite: Composite) -> None:
        """Add one; a name that is taken is an error."""
        if not isinstance(composite, Composite):
            raise RegistryError(
                f"expected a Composite, found {type(composite).__name__}: {composite!r}"
            )
        if composite.name in self._by_name:
            raise RegistryError(
                f"composite {composite.name!r} is registered twice (first in "
                f"{self._by_name[composite.name].source}); known: {self.names()}"
            )
        self._by_name[composite.name] = composite

    def __getitem__(self, name: str) -> Composite:
        short = name.removeprefix(f"{COMPILER}.")
        if short not in self._by_name:
            meant = did_you_mean(short, self._by_name)
            text = f"composite {name!r} is not registered; known: {self.names()}{meant}"
            raise RegistryError(text)
        return self._by_name[short]

    def __contains__(self, name: str) -> bool:
        return name.removeprefix(f"{COMPILER}.") in self._by_name

    def __iter__(self) -> Iterator[Composite]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)

    def names(self) -> list[str]:
        """The names in order of priority."""
        return list(self._by_name)
