"""Whether a function that was changed still computes what was recorded, as far as buffers show."""

from __future__ import annotations

from ...errors import RaiseError
from ..info.accesses import Accesses
from ..info.op_record import Recorded


def check_flow(recorded: Recorded, now: Accesses) -> None:
    """Each result is computed of the parameters of which it was. Schedules never change that; who
    edits a function may. Raises RaiseError.
    """
    then = recorded.accesses
    first = len(then.params) - len(recorded.results)
    for position in range(len(recorded.results)):
        what = f"output {position}"
        before = _read_by(then, first, first + position)
        after = _read_by(now, first, first + position)
        if before != after:
            text = f"was computed of parameters {sorted(before)}, is of {sorted(after)}"
            raise RaiseError.of("", what, f"{text}: the function was edited")


def _read_by(accesses: Accesses, inputs: int, param: int) -> set[int]:
    """The input parameters, by number, that an output parameter is computed of."""
    number = {buffer: i for i, buffer in enumerate(accesses.params[:inputs])}
    writers: dict[int, set[int]] = {}
    for block in accesses.blocks:
        read = {a.buffer for a in block.loads}
        read |= {a.buffer for a in block.stores if a.index is None}  # behind an intrinsic
        for store in block.stores:
            writers.setdefault(store.buffer, set()).update(read)
    seen: set[int] = set()
    stack = [accesses.params[param]]
    while stack:
        buffer = stack.pop()
        if buffer not in seen:
            seen.add(buffer)
            stack += writers.get(buffer, ())
    return {number[buffer] for buffer in seen if buffer in number}
