"""`show`: a schedule's loops, as TVMScript that can be read."""

from __future__ import annotations

from ..errors import InputError
from ..language.raised import folded


def show(what: object) -> None:
    """Print the loops of a schedule, a PrimFunc or an IRModule: TVMScript without the text of the
    op info, which `sch.show()` prints too. For use in the middle of a schedule.
    Raises InputError for anything else.
    """
    shown = getattr(what, "mod", what)
    script = getattr(shown, "script", None)
    if not callable(script):
        text = f"expected a schedule, a PrimFunc or an IRModule, found {type(what).__name__}"
        raise InputError(f"show: {text}")
    print(folded(str(script())))
