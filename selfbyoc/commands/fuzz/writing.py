"""A finding as files: the case, and a test of it that is ready to be moved."""

from __future__ import annotations

import hashlib
from pathlib import Path

from ...common.files import write_text
from ...tvm import GENERATION
from .judge import Finding
from .program import Program

_TEST = '''"""Found by `python -m selfbyoc fuzz` on {generation}: {kind}.

{text}
"""

from selfbyoc.commands.fuzz.run import replay

# How it grew: {grown}
CASE = """
{case}"""


def test_{name}():
    found = replay(CASE)
    assert found is None, found.text
'''


def write(folder: Path, finding: Finding, grown: Program) -> Path:
    """Write NAME.json, NAME.grown.json (as it was found) and test_NAME.py; -> the first."""
    text = finding.program.to_json()
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    name = f"{finding.kind}_{GENERATION}_{digest}"
    test = _TEST.format(
        generation=GENERATION,
        kind=finding.kind,
        text=_quoted(finding.text),
        grown=_quoted("; ".join(finding.program.grown)),
        case=text,
        name=name,
    )
    write_text(folder / f"{name}.json", text)
    write_text(folder / f"{name}.grown.json", grown.to_json())
    write_text(folder / f"test_{name}.py", test)
    return folder / f"{name}.json"


def _quoted(text: str) -> str:
    """Text of an error as it may stand in a docstring."""
    return text.replace("\\", "/").replace('"""', "'''").replace("\n", " ")
