"""The graph executor's program as TVM 0.17 reads and writes it: JSON, but with control characters
as they are, of which its reader knows no other form.
"""

from __future__ import annotations

import json
import re
from typing import Any

# What json.dumps escapes and that reader does not know; two backslashes are taken as one step.
_ESCAPED = re.compile(r"\\(?:[\"\\nrt]|b|f|u[0-9a-f]{4})")


def read(text: str) -> dict[str, Any]:
    """The program as data."""
    found: dict[str, Any] = json.loads(text, strict=False)
    return found


def write(program: dict[str, Any]) -> str:
    """Data as a program."""
    return _ESCAPED.sub(_as_it_is, json.dumps(program, ensure_ascii=False))


def _as_it_is(found: re.Match[str]) -> str:
    text = found[0]
    return text if text[1] in '"\\nrt' else str(json.loads(f'"{text}"'))
