"""Imports as on a machine that lacks a package."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without(package: str) -> Iterator[None]:
    """What is imported inside does not find a package, unless it is imported already."""
    if package in sys.modules:
        yield
        return
    sys.modules[package] = None  # type: ignore[assignment]  # an ImportError, as importlib has it
    try:
        yield
    finally:
        del sys.modules[package]
