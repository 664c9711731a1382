"""The target of an exported library, as a note in the file itself.

It is read from the file's bytes: a library for another architecture cannot be loaded, and one for
another CPU should not be.
"""

from __future__ import annotations

import json
import mmap
from pathlib import Path
from typing import Any

from .. import structured
from .._tvm import make_target, target_dict
from ..errors import TargetError, one_line

_BEGIN = b'selfbyoc.target={"'  # compiled; the source below has a backslash before the quote
_LONGEST = 4096


def write_note(folder: Path, target: Any) -> str:
    """A source file to link into the library, C and C++ alike; -> its path."""
    text = _BEGIN.decode()[:-2] + json.dumps(target_dict(target), sort_keys=True)
    path = folder / "selfbyoc_target.c"
    quoted = json.dumps(text)  # what JSON escapes in a string, C does in the same way
    path.write_text(
        f"static const char selfbyoc_target[] __attribute__((used)) = {quoted};\n",
        encoding="utf-8",
    )
    return str(path)


def read_note(path: Path) -> Any | None:
    """The target that a library was built for; None where it holds no note (another tool's
    export).
    """
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            start = data.find(_BEGIN)
            found = data[start + len(_BEGIN) - 2 : start + _LONGEST] if start >= 0 else b""
    except (OSError, ValueError):  # no such file, or an empty one: TVM says so
        return None
    if not found:
        return None
    try:
        text = found.partition(b"\0")[0].decode()
        return make_target(structured.checked(dict[str, Any], structured.loads(text), ""))
    except Exception as err:  # TVM raises plain errors of many kinds for what is no target
        said = f"{path}: the note of its target cannot be read: {one_line(err)}"
        raise TargetError(said) from err
