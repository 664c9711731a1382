"""`lint`: what is wrong with a composite's declaration, found before anything is lowered."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ...errors import RegistryError
from ...language.composite import Composite
from ...language.known import listed
from ...language.registry import Registry
from ...tvm import GENERATION
from .cases import on_cases
from .declaration import declaration
from .file import load_file, named
from .records import Finding, place


def lint(composites: Composite | Iterable[Composite]) -> list[Finding]:
    """Check composites: their text, and their computes, checks and references on their own cases.

    Nothing is scheduled, lowered or run. Cases of the other TVM generation are left out. An empty
    list says that nothing was found; nothing is raised for a bad composite.
    """
    asked = [composites] if isinstance(composites, Composite) else listed(composites) or []
    found = _duplicates(asked)
    for composite in asked:
        found += [*declaration(composite), *on_cases(composite)]
    return found


def lint_file(path: str | Path, name: str | None = None) -> list[Finding]:
    """Check the composites that a file declares, or the one with a name."""
    return tried(path, name)[0]


def tried(path: str | Path, name: str | None = None) -> tuple[list[Finding], int]:
    """What `lint_file` finds, and how many cases it tried: those of this TVM generation."""
    declared, found = load_file(Path(path))
    if found:
        return found, 0
    chosen = named(declared, name)
    cases = [case for each in chosen for case in each.cases if GENERATION in case.generations]
    return lint(chosen), len(cases)


def _duplicates(composites: Iterable[Composite]) -> list[Finding]:
    """Names that are taken twice, in the order in which a registry would meet them."""
    known, found = Registry(), []
    for composite in composites:
        try:
            known.add(composite)
        except RegistryError as err:
            where = place(getattr(composite, "pattern", None))
            found.append(Finding("duplicate-name", str(err), composite.name, *where))
    return found


__all__ = ["Finding", "lint", "lint_file"]
