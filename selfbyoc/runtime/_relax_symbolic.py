"""Relax: the default schedule for PrimFuncs of symbolic sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._tvm import dtype_of, param_buffers, tir
from .._tvm_rewrite import substitute
from .._tvm_symbolic import size_variable
from ..codegen.symbolic.families import one_family
from ..codegen.symbolic.learn import Example
from ..errors import ScheduleError
from ..language.decisions import deciding

OTHERS = (3, 2, 17, 5, 61)


def symbols(func: Any) -> dict[str, Any]:
    """The variables among the extents of a PrimFunc's parameters, by name."""
    found: dict[str, Any] = {}
    for buffer in param_buffers(func):
        for extent in getattr(buffer, "shape", None) or ():
            if isinstance(extent, tir.Var):
                found.setdefault(str(extent.name), extent)
    return found


def scheduled_for_all_sizes(func: Any, schedule: Callable[[Any], Any]) -> Any:
    """The PrimFunc as `schedule` makes it, for every size of its symbols: learnt from some. Raises
    ScheduleError where those differ in more than sizes.
    """
    known = symbols(func)
    main, *others = reversed(known)

    def make(size: int, _: Any) -> Example:
        sizes = {main: size}
        for place, name in enumerate(others):
            sizes[name] = OTHERS[(size + 2 * place) % len(OTHERS)] + 8 * place
        numbers = {known[n]: tir.IntImm(dtype_of(known[n]), s) for n, s in sizes.items()}
        with deciding({}, fitted=True, lasting=True):
            return Example(sizes, schedule(substitute(func, numbers)))

    found = one_family(main, None, make)
    if not found or found[0].least > 1:
        raise ScheduleError("the default schedules of some sizes differ in more than sizes")
    return found[0].learnt.function({name: size_variable(name) for name in known})
