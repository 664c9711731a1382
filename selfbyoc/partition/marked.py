"""A module whose matches are marked, and what it becomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..common.parts import begins
from ..tvm import module_with_attr
from ..tvm.types import IRModule
from .report import REPORT, Report, report
from .source_names import Names, with_names
from .within import within

if TYPE_CHECKING:
    from ..language.match.match import Match
    from ..language.registry import Registry


@dataclass(frozen=True)
class Partitioning:
    """A module whose matches are marked, before the external functions get what the hook needs; and
    the steps of its loops by name, each as a module of its own.
    """

    marked: Any
    registry: Registry
    target: Any | None
    matches: Sequence[Match]
    report: Report
    names: Names
    steps: Mapping[str, Partitioning]

    def finish(self, *, pack: bool) -> IRModule:
        """The partitioned module; `pack` lays constant weights out as the composites ask for."""
        from .finish import finish
        from .generation import ir
        from .generation import steps as loops

        begins("laying out weights")
        function = ir.functions_of(self.marked, self.matches)
        # Of equal ones, which share a function, the first.
        read = {function[m.root.name]: m for m in reversed(self.matches)}
        done = finish(self.marked, self.registry, self.target, read, pack=pack)
        external = ir.external_functions(done)
        symbols = {
            root: str(external[name].attrs["global_symbol"]) for root, name in function.items()
        }
        parts = {name: step.finish(pack=pack) for name, step in self.steps.items()}
        for name, part in parts.items():
            symbols |= {within(name, r.root): r.symbol for r in report(part).matched}
        done = with_names(loops.with_steps(done, parts), self.names)
        return module_with_attr(done, REPORT, self.report.with_symbols(symbols).to_json())
