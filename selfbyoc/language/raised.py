"""What a schedule's error says: the reason, the lines of the schedule, then the loops it met."""

from __future__ import annotations

import re
import sys
import traceback
from pathlib import Path

from ..errors import reason

# Whose lines are not the user's; tvm_ffi adds C++'s to a traceback, too.
_OTHERS = tuple(
    f"{Path(str(sys.modules[name].__file__)).parent}/"
    for name in (__package__.partition(".")[0], "tvm", "tvm_ffi", "numpy")
    if name in sys.modules
)
_BUILT = (".cc", ".h", ".pyx", ".pxi", ".so")
_SHOWS, _SAYS = "The IR with diagnostic is:", "Error message:"
# What TVM names by a number, and the line of it: `# tir.Block#0`, `with T.block("relu"):`.
_NUMBERED = re.compile(r"#\s*(\w*tirx?\.\w+#\d+)\n\s*(?:with T\.s?block\((\".*\")\)|(.*)):")
_LONG = re.compile(r'"(tefuse\.\w+)": "(?:[^"\\]|\\.){40,}"')
_NOISE = re.compile(r"^(?:# from|Access path:|Note: The underlined) .*\n+", re.MULTILINE)


def folded(script: str) -> str:
    """TVMScript without its imports and without our long attributes, op info above all."""
    return _LONG.sub(r'"\1": "..."', _NOISE.sub("", script)).strip("\n")


def cause(err: Exception) -> Exception | None:
    """The error, unless a traceback would begin with the whole function, told already."""
    return None if _SHOWS in str(err) else err


def in_words(err: BaseException, more: str = "") -> str:
    """The reason, and `more`; the user's own lines; then the loops as TVM met them, if it shows
    them.
    """
    if _SHOWS not in str(err):
        return f"{reason(err)}{more}{own_lines(err)}"
    head, _, rest = str(err).partition(_SHOWS)
    script, _, why = rest.rpartition(_SAYS)
    why = " ".join(why.split())
    for name, block, loop in _NUMBERED.findall(script):
        why = why.replace(name, block or f"`{loop}`")
    primitive = re.search(r"primitive '([\w-]+)'", head)
    step = f"{primitive[1].replace('-', '_')}: " if primitive else ""
    return f"{step}{why}{more}{own_lines(err)}\nThe loops then:\n{folded(script)}"


def own_lines(err: BaseException) -> str:
    """Where it was raised, in lines that are neither ours nor TVM's: `at FILE:LINE in NAME: ...`,
    the innermost of them first.
    """
    frames = [
        f"\n  at {frame.filename}:{frame.lineno} in {frame.name}: {(frame.line or '').strip()}"
        for frame in reversed(traceback.extract_tb(err.__traceback__))
        if not frame.filename.startswith(_OTHERS) and not frame.filename.endswith(_BUILT)
    ]
    return "".join(frames[:3])
