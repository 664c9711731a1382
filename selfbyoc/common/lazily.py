"""Attributes whose values are made when they are first read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

C = TypeVar("C", bound=type)


@dataclass(frozen=True)
class _Deferred:
    make: Callable[[], Any]


class _Late:
    """An attribute that holds a value, or what makes it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        if instance is None:
            return self
        found = instance.__dict__[self.name]
        if isinstance(found, _Deferred):
            found = instance.__dict__[self.name] = found.make()
        return found

    def __set__(self, instance: object, value: object) -> None:
        instance.__dict__[self.name] = value


def deferred(make: Callable[[], Any]) -> Any:
    """What stands for a value in an attribute that is `lazily` read."""
    return _Deferred(make)


def lazily(*names: str) -> Callable[[C], C]:
    """Decorate a dataclass some fields of which may be given as `deferred`."""

    def decorated(owner: C) -> C:
        for name in names:
            setattr(owner, name, _Late(name))
        return owner

    return decorated
