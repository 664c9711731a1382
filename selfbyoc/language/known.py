"""Which composites there are: the built-in ones, and those that users handed to a partitioning."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Literal, TypeAlias

from ..common.upper import upper
from ..errors import RegistryError
from .composite import Composite
from .installed import offers
from .registry import Registry, checked

# What is asked for: None is the built-in ones, "installed" those of packages before these.
Composites: TypeAlias = Iterable[Composite] | Literal["installed"] | None
INSTALLED: Literal["installed"] = "installed"

_ids = itertools.count()
_used: dict[
    str, Composite
] = {}  # what partitioning handed out; the hook finds it again by this key
_loaded: dict[str, Composite] = {}  # of packages, by name


@cache
def default_registry() -> Registry:
    """The built-in composites, in order of priority."""
    return Registry(upper("schedules:BUILTIN"))


def is_builtin(composite: Composite) -> bool:
    """Whether this very composite is this package's own, with nothing of it replaced."""
    return any(composite is known for known in default_registry())


def installed() -> list[Composite]:
    """The composites of installed packages: those that they name under the entry point
    `selfbyoc.composites`, in order of the packages' names. It imports them.

    `composites="installed"` is `[*selfbyoc.installed(), *selfbyoc.BUILTIN]`.

    Raises ToolError for a package that cannot be imported, and RegistryError for one that names no
    composites, or one whose name another package or a built-in composite has.
    """
    found: dict[str, Composite] = {c.name: c for c in default_registry()}
    owners = dict.fromkeys(found, "selfbyoc itself")
    for offer in offers():
        for composite in offer.composites():
            name = composite.name
            if found.setdefault(name, composite) is not composite:
                raise RegistryError(f"composite {name!r} is of {owners[name]}, and of {offer} too")
            owners.setdefault(name, str(offer))
    mine = {name: c for name, c in found.items() if not is_builtin(c)}
    _loaded.update(mine)
    return list(mine.values())


def listed(composites: Composites) -> list[Composite] | None:
    """The composites that a user asked for, each of which is one; None: the built-in ones."""
    if composites is None:
        return None
    return _named(composites) if isinstance(composites, str) else checked(composites)


def _named(word: str) -> list[Composite]:
    if word != INSTALLED:
        text = f"expected a list of composites, found {word!r} alone"
        raise RegistryError(f"{text}; the only word is {INSTALLED!r}")
    return [*installed(), *default_registry()]


def registry_of(composites: Composites) -> Registry:
    """The composites of one partitioning: the given ones, or the built-in ones."""
    asked = listed(composites)
    return default_registry() if asked is None else Registry(asked)


def remember(composite: Composite) -> str:
    """A key under which the hook finds this very composite, in this process."""
    for key, known in _used.items():
        if known is composite:
            return key
    key = f"{composite.name}#{next(_ids)}"
    _used[key] = composite
    return key


def composite_of(names: Sequence[str], key: str | None) -> Composite | None:
    """The composite of an external function; None where it holds several, merged by another
    pass.

    A function that was partitioned in another process is looked up by name, among those of packages
    that are loaded and the built-in ones.
    """
    if not names and key is not None:  # another pass took the marked function out of it
        names = [key.partition("#")[0]]
    if len(names) != 1:
        for name in names:
            _by_name(name)
        return None
    if key in _used:
        return _used[key]
    return _by_name(names[0])


def _by_name(name: str) -> Composite:
    short = name.removeprefix("tefuse.")
    for known in reversed(_used.values()):
        if known.name == short:
            return known
    if short in _loaded:
        return _loaded[short]
    if short not in default_registry() and (packages := sorted({o.package for o in offers()})):
        raise RegistryError(
            f"composite {short!r} is not registered; where it is one of an installed package "
            f"({', '.join(packages)}), call selfbyoc.installed() first"
        )
    return default_registry()[name]
