"""docs/README.md lists every page once, and examples/README.md every example."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS, EXAMPLES = ROOT / "docs", ROOT / "examples"
INDEX = (DOCS / "README.md").read_text(encoding="utf-8")


def test_every_page_has_a_line():
    listed = re.findall(r"^\| \[[\w -]+\]\(((?:makers/)?[\w-]+\.md)\) \| \S", INDEX, re.MULTILINE)
    pages = [*DOCS.glob("*.md"), *DOCS.glob("makers/*.md")]
    assert sorted(listed) == sorted(
        str(p.relative_to(DOCS)) for p in pages if p.name != "README.md"
    )


def test_every_report_is_linked():
    named = [path.name for path in (DOCS / "reports").iterdir() if path.suffix in (".md", ".txt")]
    assert [name for name in named if f"(reports/{name})" not in INDEX] == []


def test_the_readme_leads_there():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "(docs/README.md)" in text
    assert "(examples/README.md)" in text


def test_every_example_has_a_line():
    text = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| \[`(\w+\.\w+)`\]\(\1\) \| \S", text, re.MULTILINE)
    assert sorted(listed) == sorted(
        path.name for path in EXAMPLES.iterdir() if path.suffix in (".py", ".cc")
    )


def test_the_glossary_is_in_order():
    text = (DOCS / "glossary.md").read_text(encoding="utf-8")
    words = re.findall(r"^\| ([\w ]+) \| \S", text, re.MULTILINE)[1:]
    assert words == sorted(words, key=str.lower)
    assert {"composite", "generation", "match", "melted", "refused", "stacked", "tefuse"} <= {
        *words
    }
