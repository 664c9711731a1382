"""`selfbyoc new NAME`: the files, written where there are none."""

from __future__ import annotations

import importlib.util
import keyword
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from rich.console import Console

from ...common.files import write_text
from ...errors import CompositeError, InputError, RegistryError
from ...language.known import default_registry
from ...language.names import check_name

_READ = ("conftest", "setup")  # Python files of these names are run by pytest and by setuptools


@dataclass(frozen=True)
class Request:
    """What the command line asks."""

    name: str
    package: bool = False


def new(console: Console, asked: Request) -> None:
    """Write them, and say what to do next. Raises CompositeError, RegistryError or InputError for a
    name that would not do, and InputError for files that are there.
    """
    _check(asked.name)
    folder = Path(asked.name if asked.package else ".")
    texts = {folder / name: text for name, text in _texts(asked).items()}
    for path in texts:
        if path.exists() or path.is_symlink():
            raise InputError(f"{path} is there already: move it, or choose another name")
    for path, text in texts.items():
        write_text(path, text)
        console.print(str(path), markup=False, highlight=False)
    for line in _next(asked, folder):
        console.print(line, markup=False, highlight=False)


def _next(asked: Request, folder: Path) -> Iterator[str]:
    yield f"\ntry it:     pytest {folder / f'test_{asked.name}.py'}"
    if asked.package:
        yield f"install it: pip install ./{folder}"
        yield 'use it:     --composites installed, or composites="installed" in Python'


def _check(name: str) -> None:
    check_name(name)
    if keyword.iskeyword(name):
        raise CompositeError(f"composite name {name!r}: it is a word of Python's")
    if name in default_registry():
        raise RegistryError(f"composite {name!r} is a built-in one: choose another name")
    spec = importlib.util.find_spec(name)
    here = Path(f"{name}.py").resolve()  # it is no other module than the one to be written
    if name in _READ or (spec is not None and spec.origin not in (None, str(here))):
        raise InputError(f"{name}.py would be taken for another module: choose another name")


def _texts(asked: Request) -> dict[str, str]:
    """What the files hold, by name."""
    kept = {"composite.py": f"{asked.name}.py", "test.py": f"test_{asked.name}.py"}
    if asked.package:
        kept["pyproject.toml"] = "pyproject.toml"
    words = {"NAME": asked.name, "PROJECT": asked.name.strip("_").replace("_", "-")}
    return {to: _text(f"{source}.in", words) for source, to in kept.items()}


def _text(source: str, words: dict[str, str]) -> str:
    text = files(__package__).joinpath(source).read_text(encoding="utf-8")
    for word, meant in words.items():
        text = text.replace(f"{{{word}}}", meant)
    return text
