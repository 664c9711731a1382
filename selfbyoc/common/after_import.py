"""What runs once another package was imported."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class AfterImport(MetaPathFinder):
    """Finds a package where the others do, and has a function called behind its first import."""

    def __init__(self, name: str, then: Callable[[], object]) -> None:
        self.name, self.then = name, then

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Of this package alone."""
        if fullname != self.name:
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        specs = (finder.find_spec(fullname, path, target) for finder in others)
        spec = next(filter(None, specs), None)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def executed(module: ModuleType) -> None:
                forget(self)
                run(module)
                self.then()

            spec.loader.exec_module = executed  # type: ignore[method-assign]
        return spec


def after_import(name: str, then: Callable[[], object]) -> None:
    """Have it called behind the first import of a package that is none yet."""
    sys.meta_path.insert(0, AfterImport(name, then))


def forget(finder: MetaPathFinder) -> None:
    """No more is looked for."""
    if finder in sys.meta_path:
        sys.meta_path.remove(finder)
