"""TE where it does not belong, recognised, and said how to say now: a compute as a pattern, and
schedules of TE where one of TensorIR is expected.

TE's own (`s = te.create_schedule(...)`, `s[x].op.axis`) are no part of 0.27 at all, and on 0.17
they do nothing to a composite's function.
"""

from __future__ import annotations

import inspect
import re
import traceback
from collections.abc import Callable

from ..tvm import te

NOW = (
    "a composite's schedule is a function (sch, ops, target) of TensorIR: "
    "sch.get_loops(ops.relu.block) for s[relu].op.axis, sch.compute_at(ops.dense.block, loop) for "
    "s[dense].compute_at(s[relu], axis), and nothing to create or to return (docs/schedules.md)"
)
# The forum's "Expected RelayExpr got Tensor".
COMPUTES = (
    "write what it stands for as ops (`op.conv2d(x, weight)`), and give the function that computes "
    "it to Composite as `compute` (docs/tutorial.md)"
)
_SPELLINGS = re.compile(
    r"create_schedule|\.op\.(?:reduce_)?axis|\bte\.thread_axis"
    r"|\w+\[[^\]]+\]\.(?:split|tile|fuse|reorder|compute_at|compute_inline|vectorize|parallel|unroll"
    r"|bind|tensorize|pragma)\b"
)


def declared_in_te(function: Callable[..., object]) -> str:
    """Why a function cannot be a composite's schedule, as its declaration tells; or nothing."""
    code = getattr(function, "__code__", None)
    if code is not None and "create_schedule" in code.co_names:
        return f"found te.create_schedule in {function.__name__}, a schedule of TE; {NOW}"
    try:
        signature = inspect.signature(function)
    except ValueError:  # written in C: it says no more
        return ""
    names = list(signature.parameters)
    # As TOPI's and those of Relay's strategies; or `s` and the tensors that it is of.
    if "outs" in names or (names[:1] == ["s"] and len(names) != 3):
        found = f"{getattr(function, '__name__', 'the function')}{signature}"
        return f"found {found}, the signature of a schedule of TE; {NOW}"
    return ""


def raised_in_te(err: BaseException) -> str:
    """`; ` and the way to say it, if the line that raised is TE; or nothing."""
    frames = traceback.extract_tb(err.__traceback__)
    lines = [found.group() for f in frames if (found := _SPELLINGS.search(f.line or ""))]
    return f"; {lines[-1]!r} is TE: {NOW}" if lines else ""


def is_te_schedule(value: object) -> bool:
    """Whether it is a schedule of TE, which 0.27 has not."""
    kind = getattr(te, "Schedule", None)
    return kind is not None and isinstance(value, kind)
