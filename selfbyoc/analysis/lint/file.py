"""The composites of a file, or why it cannot be loaded."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

from ...errors import CompositeError, InputError, RegistryError, did_you_mean, one_line
from ...language.composite import Composite
from ...language.known import default_registry
from .records import Finding

_NONE = "it declares no Composite at its top level; one made inside a function is not seen"


def load_file(path: Path) -> tuple[list[tuple[str, Composite]], list[Finding]]:
    """The composites that a file declares, with the names of their variables; or findings."""
    if not path.is_file():
        raise InputError(f"{path} is no file")
    try:
        module = _imported(path)
    except SyntaxError as err:
        line = f": {err.text.strip()}" if err.text else ""
        return [], [Finding("syntax", f"{err.msg}{line}", file=str(path), line=err.lineno or 0)]
    except (CompositeError, RegistryError) as err:
        return [], [Finding("declaration", str(err), file=str(path), line=_line(err, path))]
    except (Exception, SystemExit) as err:  # a user's file raises whatever it likes
        text = f"importing it raised {one_line(err)}"
        return [], [Finding("import", text, file=str(path), line=_line(err, path))]
    found = [(n, c) for n, c in _composites(vars(module)) if not _is_imported(c, path)]
    if not found:
        return [], [Finding("no-composite", _NONE, file=str(path))]
    return found, []


def declared_in(files: Iterable[str | Path]) -> list[Composite]:
    """The composites that files declare. Raises InputError with the first finding."""
    found: list[Composite] = []
    for name in files:
        declared, findings = load_file(Path(name))
        if findings:
            raise InputError(str(findings[0]))
        found += [composite for _, composite in declared]
    return list(dict.fromkeys(found))


def named(found: list[tuple[str, Composite]], name: str | None) -> list[Composite]:
    """The composites with a name, or the variable's name; all of them for None."""
    chosen = [c for variable, c in found if name in (None, c.name, variable)]
    if not chosen:
        known = [c.name for _, c in found]
        raise InputError(f"no composite {name!r}; known: {known}{did_you_mean(name or '', known)}")
    return list(dict.fromkeys(chosen))


def _imported(path: Path) -> ModuleType:
    """As part of its package, if it is in one: relative imports work then."""
    path = path.resolve()
    names: list[str] = []
    folder = path.parent
    while (folder / "__init__.py").exists():
        names.insert(0, folder.name)
        folder = folder.parent
    if names:
        with _on_path(folder):
            return importlib.import_module(".".join([*names, path.stem]))
    spec = importlib.util.spec_from_file_location(f"linted_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise InputError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    with _on_path(path.parent):
        spec.loader.exec_module(module)
    return module


class _on_path:
    """What lies beside the file can be imported by it."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)

    def __enter__(self) -> None:
        sys.path.insert(0, self.folder)

    def __exit__(self, *_: object) -> None:
        sys.path.remove(self.folder)


def _line(err: BaseException, path: Path) -> int:
    """The line of the file that led to the error, or first of all to what it was made of."""
    frames = traceback.extract_tb(err.__traceback__)
    if err.__cause__ is not None:
        frames += traceback.extract_tb(err.__cause__.__traceback__)
    lines = [f.lineno for f in frames if Path(f.filename).resolve() == path.resolve()]
    return (lines[-1] or 0) if lines else 0


def _composites(values: dict[str, object]) -> Iterator[tuple[str, Composite]]:
    for name, value in values.items():
        for each in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(each, Composite):
                yield name, each


def _is_imported(composite: Composite, path: Path) -> bool:
    """Whether it is a built-in one that the file only uses; a pattern may come from elsewhere."""
    elsewhere = Path(composite.source).resolve() != path.resolve()
    return elsewhere and any(composite is known for known in default_registry())
