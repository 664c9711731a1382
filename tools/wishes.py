"""Tables of what shows a claim, of tests/wishes.txt and tests/features.txt.

python tools/wishes.py > docs/makers/wishes.md
python tools/wishes.py features > docs/makers/features.md
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = "docs/makers"  # of both pages: what their links start from

HEAD = """\
# What was wished for, and what shows it

Three public discussions of TVM's users: A is the forum's "Relay pattern replacing with custom
relay ops?", B the issue "Extract Op Info from PrimFunc" of Relax, C the "RFC: A general task
extraction mechanism for auto_scheduler". A row is a wish, a question or a promise of theirs, in our
words. What shows it is tests, programs that the suite runs, and pages whose code it runs. **In
part** says what no test shows, or what is not done. A question that a page answers in words alone,
with nothing to run, is **in words**.

Made of `tests/wishes.txt` by `tools/wishes.py`; `tests/repository/test_wishes.py` looks
whether all ids are there, whether all that is named exists, and whether this page is current.

"""
FEATURES = """\
# What users expect, and what shows it

What users of ONNX Runtime, OpenVINO's tools, `tvmc`, `iree-compile` and `torch.compile` look for
first, each with the tests, programs and pages that show it.

Made of `tests/features.txt` by `tools/wishes.py`; `tests/repository/test_wishes.py` looks
whether all that is named exists.

"""
_STATES = ("shown", "in words", "in part", "not met")


@dataclass
class Wish:
    """A row: how it is met, what shows it, and what is missing."""

    id: str
    text: str
    how: str = ""
    shown: list[str] = field(default_factory=list)
    missing: str = ""

    @property
    def state(self) -> str:
        """Shown, answered in words, met in part, or not met."""
        if not self.shown:
            return "not met"
        if self.missing:
            return "in part"
        return "shown" if any(map(_runs, self.shown)) else "in words"


def _runs(shown: str) -> bool:
    """A test, a program, or a page with code in it."""
    return not shown.endswith(".md") or "```python" in (ROOT / shown).read_text(encoding="utf-8")


def wishes(name: str = "wishes") -> list[Wish]:
    """All rows of the data."""
    found: list[Wish] = []
    for line in (ROOT / f"tests/{name}.txt").read_text(encoding="utf-8").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("  + "):
            found[-1].shown += line[4:].split(", ")
        elif line.startswith("  = "):
            found[-1].how = line[4:]
        elif line.startswith("  - "):
            found[-1].missing = line[4:]
        else:
            id_, text = line.split("  ", 1)
            found.append(Wish(id_, text))
    return found


def path_of(shown: str) -> Path:
    """The file of what shows a wish."""
    name = shown.partition("::")[0]
    is_elsewhere = name.startswith(("docs/", "examples/")) or name == "README.md"
    return Path(name) if is_elsewhere else Path("tests") / name


def page(name: str = "wishes") -> str:
    """The document."""
    rows = wishes(name)
    states = [wish.state for wish in rows]
    counts = ", ".join(f"{states.count(s)} {s}" for s in _STATES)
    lines = [f"{len(rows)} {name}: {counts}.", ""]
    kind = "id | wish" if name == "wishes" else " | feature"
    lines += [f"| {kind} | how it is met, and what is missing | shown by |", "|---|---|---|---|"]
    for wish in rows:
        links = "<br>".join(map(_link, wish.shown))
        marked = "" if wish.state == "shown" else f"**{wish.state}**"
        missing = ": ".join(filter(None, (marked, wish.missing)))
        met = "; ".join(filter(None, (wish.how, missing)))
        lines.append(f"| {wish.id} | {wish.text} | {met} | {links} |")
    head = HEAD if name == "wishes" else FEATURES
    return head + "\n".join(lines) + "\n"


def _link(shown: str) -> str:
    path = path_of(shown)
    return f"[`{shown.rpartition('::')[2]}`]({os.path.relpath(path, FOLDER)})"


if __name__ == "__main__":
    sys.stdout.write(page(*sys.argv[1:]))
