"""Schedules a kernel at some of its symbolic sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...language.decisions import deciding
from .formula import Sizes
from .learn import Example

if TYPE_CHECKING:
    from ..lower import External


@dataclass(frozen=True)
class Maker:
    """Schedules a kernel at some sizes."""

    source: External
    target: Any

    def decided(self, sizes: Sizes) -> dict[str, Any]:
        """What its plan decides for these sizes, that fits others too."""
        with deciding({}, fitted=True, lasting=True) as asked, self.target:
            self._plan(self.source.at(sizes))
        return asked.taken

    def example(self, sizes: Sizes, told: Mapping[str, Any] | None) -> Example | None:
        """The kernel of these sizes, decided so (None: as for these sizes alone); None where they
        decide otherwise.
        """
        source, lasting = self.source.at(sizes), told is not None
        at = deciding(told, fitted=True, lasting=lasting, sizes=sizes.values())
        with at as asked, self.target:
            if told:
                self._plan(source)
                if any(asked.taken.get(name) != value for name, value in told.items()):
                    return None
            return Example(sizes, _bare(self._scheduled(source)))

    def _plan(self, source: External) -> None:
        from ..lower import match_of, packed_params
        from ..planned import plan_of

        packed = {p.arg: p.value.shape for p in packed_params(source).values()}
        plan_of(match_of(source), packed)

    def _scheduled(self, source: External) -> Any:
        from ..lower import schedule_external

        return schedule_external(source, self.target)[1].mod["main"]


def _bare(func: Any) -> Any:
    """A function without what we note on it: that is of its sizes."""
    for name in [str(n) for n in func.attrs.keys()]:  # noqa: SIM118 (no Python dict)
        if name in ("global_symbol", "Composite") or name.startswith("tefuse."):
            func = func.without_attr(name)
    return func
