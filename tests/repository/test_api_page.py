"""docs/api.md has every public name, and says what the docstrings say."""

import inspect
import re
from pathlib import Path

import pytest
from scripts import tool

import selfbyoc
from selfbyoc import errors, transform

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/api.md").read_text(encoding="utf-8")
MENDED = "run python tools/api.py > docs/api.md, with griffelib of the extra dev"


def api():
    pytest.importorskip("griffe", reason="needs griffelib")
    return tool("api")


def test_the_page_is_current():
    assert api().page() == PAGE, MENDED


def test_every_public_name_is_there_once():
    entries = re.findall(r"^### (\w+)$", PAGE.partition("## selfbyoc.transform")[0], re.MULTILINE)
    assert sorted(entries) == sorted(selfbyoc.__all__), MENDED
    passes = PAGE.partition("## selfbyoc.transform")[2]
    assert [name for name in transform.__all__ if f"### {name}\n" not in passes] == []
    classes = [
        n for n, c in vars(errors).items() if inspect.isclass(c) and c.__module__ == errors.__name__
    ]
    assert [name for name in classes if f"| `{name}` |" not in PAGE] == []


def test_every_parameter_of_a_function_has_a_name_in_its_text():
    """What a docstring in columns leaves out is a gap; short ones explain theirs in words."""
    for name in selfbyoc.__all__:
        function = getattr(selfbyoc, name)
        if not inspect.isfunction(function):
            continue
        text = inspect.getdoc(function)
        rows = re.findall(r"^((?:[a-z_]+, )*[a-z_]+)  +\S", text, re.MULTILINE)
        columns = {each for row in rows for each in row.split(", ")}
        parameters = set(inspect.signature(function).parameters)
        assert columns <= parameters, name
        if len(columns) > 2:
            missing = {p for p in parameters - columns if not re.search(rf"\b{p}\b", text)}
            assert missing <= {"mod", "name", "sch", "seed"}, name


def test_columns_and_examples():
    text = "One line\nof text.\n\nname, other   what\n              it is\nx   y\n\n    a -> b"
    assert api().markdown(text) == (
        "One line of text.\n\n- `name`, `other`: what it is\n- `x`: y\n\n```py\na -> b\n```"
    )
