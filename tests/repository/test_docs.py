"""The pages' links lead somewhere, and what they name is there; test_doors.py runs their code."""

import re
from pathlib import Path

import pytest

from selfbyoc import BUILTIN
from selfbyoc.commands.tables import composites_markdown, fusion_markdown

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "examples/README.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "makers").glob("*.md")),
]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: p.name)
def test_links_lead_to_files(path):
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", path.read_text(encoding="utf-8"))
    missing = [target for target in targets if not (path.parent / target).exists()]
    assert missing == []


def anchors(path):
    """What GitHub makes of a page's headings."""
    text = re.sub(
        r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        yield re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: p.name)
def test_links_lead_to_headings(path):
    links = re.findall(r"\]\((?!https?:)([^)#\s]*)#([^)\s]+)\)", path.read_text(encoding="utf-8"))
    lost = [
        f"{page}#{anchor}"
        for page, anchor in links
        if anchor not in set(anchors((path.parent / page).resolve() if page else path))
    ]
    assert lost == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: p.name)
def test_named_files_exist(path):
    """`partition/select.py` and the like are files of the package, of the tests, or of the
    repository.
    """
    named = re.findall(r"`((?:[\w-]+/)+[\w.-]+\.(?:py|md))`", path.read_text(encoding="utf-8"))
    places = (ROOT / "selfbyoc", ROOT / "tests", ROOT)
    assert [n for n in named if not any((place / n).exists() for place in places)] == []


def test_the_tables_of_composites_are_current():
    text = (ROOT / "docs" / "composites.md").read_text(encoding="utf-8")
    for table in (composites_markdown(BUILTIN), fusion_markdown(BUILTIN)):
        assert table in text, "paste what `python -m selfbyoc composites --markdown` prints"
