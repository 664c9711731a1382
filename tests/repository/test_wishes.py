"""The map of wishes, and that of features, are whole, what they name exists, and their pages are
current.
"""

import ast
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from scripts import tool

ROOT = Path(__file__).parents[2]
COUNTS = {"A": 66, "B": 25, "C": 34}  # 65 + 22 + 33 of the first list, and five that it had missed


TOOL = tool("wishes")
WISHES = TOOL.wishes()
FEATURES = TOOL.wishes("features")


@cache
def functions(path):
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_id_is_there_once_and_in_order():
    expected = [f"{letter}{n}" for letter, count in COUNTS.items() for n in range(1, count + 1)]
    assert [wish.id for wish in WISHES] == expected


@pytest.mark.parametrize("wish", [*WISHES, *FEATURES], ids=lambda w: w.id)
def test_what_it_names_exists(wish):
    assert wish.text
    assert wish.shown or wish.missing
    for shown in wish.shown:
        path = TOOL.path_of(shown)
        assert (ROOT / path).is_file(), shown
        name = shown.partition("::")[2]
        assert (path.parts[0] == "tests") == bool(name), shown
        assert not name or name in functions(path), shown
    assert max(Counter(wish.shown).values(), default=1) == 1


def test_what_a_test_says_it_shows_is_in_the_map():
    """A test whose docstring or name begins with a wish is named there."""
    named = {wish.id: " ".join(wish.shown) for wish in WISHES}
    for name in functions(Path("tests/whole/test_rfc.py")):
        ids = [part.upper() for part in name.split("_") if part[0] == "c" and part[1:].isdigit()]
        for one in ids[:1]:
            assert name in named[one] or name == "test_c2_with_a_tail", name


def test_the_features_that_people_expect():
    expected = {"compile", "run", "time", "show", "shapes", "signature", "torch backend", "pass"}
    assert expected | {"DLPack", "API reference", "C++"} <= {feature.id for feature in FEATURES}


@pytest.mark.parametrize("name", ["wishes", "features"])
def test_the_page_is_current(name):
    page = (ROOT / f"docs/makers/{name}.md").read_text(encoding="utf-8")
    assert page == TOOL.page(name), f"run tools/wishes.py {name} > docs/makers/{name}.md"
