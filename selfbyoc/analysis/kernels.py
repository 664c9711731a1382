"""The kernels of a partitioned module: what each is made of, before it is lowered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace

import numpy as np

from ..codegen.apply import Scheduled
from ..codegen.external import External, match_of, read_attrs
from ..codegen.fallback import or_default
from ..codegen.hook import hook
from ..codegen.schedule import schedule_external
from ..codegen.stack import Stacked
from ..language.composite import Composite
from ..language.decisions import Decisions, for_every_size_of
from ..language.match.match import Match
from ..partition.generation import ir
from ..partition.report import report
from ..tvm.types import IRModule, Target


@dataclass(frozen=True)
class Kernel:
    """One external function. Equal matches of a model may share it, hence several roots."""

    symbol: str
    roots: tuple[str, ...]  # root ops of its matches, by their names in the report
    source: External
    match: Match  # on the external function's own graph, whose ops are named by themselves
    calls: Sequence[Mapping[int, np.ndarray]]  # constant arguments of each call, by position
    sizes: Mapping[str, int] = field(default_factory=dict)  # of its symbols, where it is at some

    @property
    def composite(self) -> Composite:
        """What it was matched by."""
        return self.match.composite

    def at(self, sizes: Mapping[str, int]) -> Kernel:
        """The same kernel at the sizes of its symbols among these; without any, as it is."""
        own = {name: sizes[name] for name in self.source.symbols}
        if not own:
            return self
        source = self.source.at(own)
        return replace(self, source=source, match=match_of(source), sizes=own)

    def planning(self) -> AbstractContextManager[Decisions | None]:
        """Decide as the hook does: where there are symbols, what fits every size."""
        return for_every_size_of((self.sizes or self.source.sizes).values())

    def schedule(self, target: Target) -> tuple[Stacked, Scheduled]:
        """As the hook does it: the stacked function, and its scheduled form with the level."""
        with self.planning():
            return or_default(schedule_external, self.source, target)


def kernels(mod: IRModule) -> list[Kernel]:
    """The external functions of a partitioned module, in the order of the report's matches."""
    matched = report(mod).matched
    roots: dict[str, list[str]] = {}
    for record in matched:
        roots.setdefault(record.symbol, []).append(record.root)
    constants = ir.call_constants(mod)
    calls: dict[str, list[dict[int, np.ndarray]]] = {}
    found = {}
    for name, func in ir.external_functions(mod).items():
        attrs = read_attrs(func.attrs)
        symbol = str(func.attrs["global_symbol"])
        # On Relay equal functions are several with one symbol, on Relax one function.
        calls.setdefault(symbol, []).extend(constants.get(name, []))
        source = hook.source_of(func, symbol, attrs)
        found[symbol] = Kernel(
            symbol, tuple(roots.get(symbol, ())), source, match_of(source), calls[symbol]
        )
    # Another pass may have merged functions: those come last, and are no match's alone.
    known = [found[symbol] for symbol in roots if symbol in found]
    return known + [kernel for symbol, kernel in found.items() if symbol not in roots]
