"""Composites by name, in order of priority."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..errors import RegistryError, did_you_mean
from .composite import COMPILER, Composite


def checked(composites: Iterable[Composite]) -> list[Composite]:
    """The composites that a user handed over, each of which is one."""
    if isinstance(composites, (Composite, str)) or not isinstance(composites, Iterable):
        name = composites.name if isinstance(composites, Composite) else repr(composites)
        raise RegistryError(f"expected a list of composites, found {name} alone")
    return list(map(_checked, composites))


def _checked(given: object) -> Composite:
    """A composite, whoever gives what else."""
    if isinstance(given, Composite):
        return given
    hint = ""
    if isinstance(given, str):
        hint = f"; a built-in one by its name is Registry(BUILTIN)[{given!r}]"
    raise RegistryError(f"expected a Composite, found {type(given).__name__}: {given!r}{hint}")


class Registry:
    """Composites by name; the order of adding is their priority."""

    def __init__(self, composites: Iterable[Composite] = ()) -> None:
        self._by_name: dict[str, Composite] = {}
        for composite in checked(composites):
            self.add(composite)

    def add(self, composite: Composite) -> None:
        """Add one; a name that is taken is an error."""
        _checked(composite)
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
