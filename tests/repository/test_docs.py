"""The documents' code runs, prints what they say, and their links lead somewhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from selfbyoc import BUILTIN
from selfbyoc.commands.tables import composites_markdown, fusion_markdown
from selfbyoc.tvm import GENERATION, tvm

ROOT = Path(__file__).parents[2]
NO_TORCH = str(ROOT / "tests" / "support" / "no_torch")
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "examples/README.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "makers").glob("*.md")),
]
BLOCK = re.compile(
    r"^```(python|text)(?: (relay|relax)(?: (fork|stock))?)?\n(.*?)^```$", re.DOTALL | re.MULTILINE
)
# Of the two Relay builds: the fork calls itself 0.17.dev0.
BUILD = "fork" if ".dev" in tvm.__version__ else "stock"


def blocks(path, kind):
    """The code or the output of a document that is for the generation, and the build, at hand."""
    found = BLOCK.findall(path.read_text(encoding="utf-8"))
    return "\n".join(
        text
        for k, generation, build, text in found
        if k == kind and generation in ("", GENERATION) and build in ("", BUILD)
    )


RUNNABLE = [path for path in DOCUMENTS if blocks(path, "python")]


@pytest.mark.parametrize("path", RUNNABLE, ids=lambda p: p.name)
def test_code_prints_what_the_document_says(path, tmp_path):
    script = tmp_path / f"{path.stem}.py"
    script.write_text(blocks(path, "python"), encoding="utf-8")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([NO_TORCH, str(ROOT), *sys.path])}
    done = subprocess.run(
        [sys.executable, str(script)], env=env, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    wanted = [line for line in blocks(path, "text").splitlines() if line]
    assert [line for line in done.stdout.splitlines() if line] == wanted


def test_the_readme_is_among_them():
    assert {"README.md", "tutorial.md", "tuning.md", "tvm-notes.md"} <= {p.name for p in RUNNABLE}


def test_a_composite_is_some_twenty_lines():
    """A28: the README's, with its reference and all that runs it, is a program of its own."""
    text = blocks(ROOT / "README.md", "python")
    declared, _, rest = text.partition("from tvm import relay" if GENERATION == "relay" else
                                       "from tvm import relax")  # fmt: skip
    assert "lookup = Composite(" in declared
    assert len([line for line in declared.splitlines() if line.strip()]) <= 12
    assert len([line for line in text.splitlines() if line.strip()]) <= 30
    assert "selfbyoc.build(mod)" in rest


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
