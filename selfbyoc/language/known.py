"""Which composites there are: the built-in ones, and those that users handed to a partitioning."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from functools import cache

from .composite import Composite
from .registry import Registry

builtin: Sequence[Composite] = ()  # of schedules/, in order of priority: api.py sets it
_ids = itertools.count()
_used: dict[
    str, Composite
] = {}  # what partitioning handed out; the hook finds it again by this key


@cache
def default_registry() -> Registry:
    """The built-in composites, in order of priority."""
    if not builtin:  # or else a process of ours would find nothing to fuse, and not say so
        raise RuntimeError("selfbyoc.api is not imported in this process")
    return Registry(builtin)


def is_builtin(composite: Composite) -> bool:
    """Whether this very composite is this package's own, with nothing of it replaced."""
    return any(composite is known for known in default_registry())


def registry_of(composites: Iterable[Composite] | None) -> Registry:
    """The composites of one partitioning: the given ones, or the built-in ones."""
    return default_registry() if composites is None else Registry(composites)


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

    A function that was partitioned in another process is looked up by name among the built-in ones.
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
    return default_registry()[name]
