"""Rewritings of main for those that have an op that they are about: to look at each op of a network
takes 0.05 s, and there are nine rewritings.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from ..ir.generation import ops_in, rewritten
from ..ir.rewriting import Rewriting
from ..ops.vocabulary import read_as
from ..tvm.types import IRModule


def where(
    ops: Collection[str], rewriting: Callable[[], Rewriting]
) -> Callable[[IRModule], IRModule]:
    """A module, its main rewritten if it has one of some ops, by name or by kind. Of others the
    rewriting changes nothing.
    """

    def done(mod: IRModule) -> IRModule:
        names = ops_in(mod)
        found = names | {read_as(name) for name in names}
        return mod if found.isdisjoint(ops) else rewritten(mod, rewriting())

    return done
