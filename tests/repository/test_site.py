"""The site has every page once, in the groups of docs/README.md, and loads nothing from elsewhere.

`make site` checks links and headings as it builds; this is what can be known without MkDocs.
"""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
CONFIG = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
NAV = CONFIG.partition("\nnav:\n")[2]
LISTED = re.findall(r"^ +- (?:[\w ]+: )?(\S+\.md)$", NAV, re.MULTILINE)


def test_every_page_is_there_once():
    above = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    pages = [*above, ROOT / "examples/README.md", *(ROOT / "docs").rglob("*.md")]
    assert sorted(LISTED) == sorted(str(page.relative_to(ROOT)) for page in pages)


def test_the_groups_are_those_of_the_list():
    text = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    for group in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        rows = re.findall(r"^\| \[[\w-]+\]\(([\w/-]+\.md)\)", group, re.MULTILINE)
        if rows:
            rest = NAV.partition(f"  - {group.splitlines()[0]}:\n")[2]
            inside = re.split(r"^  - ", rest, flags=re.MULTILINE)[0]
            named = re.findall(r"(docs/(?!README)\S+\.md)$", inside, re.MULTILINE)
            assert named == [f"docs/{row}" for row in rows], group.splitlines()[0]


def test_a_newcomer_has_five_pages():
    start = re.split(r"^  - ", NAV, flags=re.MULTILINE)[1]
    pages = [
        page for page in re.findall(r"(\S+\.md)$", start, re.MULTILINE) if "docs/R" not in page
    ]
    assert len(pages) == 5
    for page in pages:
        words = len((ROOT / page).read_text(encoding="utf-8").split())
        assert 500 <= words <= 1500, f"{page} has {words} words"


def test_nothing_is_loaded_from_elsewhere():
    assert "font: false" in CONFIG
    assert "plugins: [search, offline]" in CONFIG
    needed = re.findall(r"\[(tools/site/[\w./-]+)\]", CONFIG)
    assert {Path(name).suffix for name in needed} == {".py", ".js", ".css"}
    assert [name for name in needed if not (ROOT / name).exists()] == []
    assert "http" not in CONFIG
