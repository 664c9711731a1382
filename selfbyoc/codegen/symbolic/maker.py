"""Schedules a kernel at some of its symbolic sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...language.decisions import deciding
from .formula import Sizes
from .learn import Example

if TYPE_CHECKING:
    from ..lower import External

BORDERS = (1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 48, 49, 64, 65, 100, 128, 129, 192, 193, 513)


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


def border_sizes(source: External) -> Iterator[Sizes]:
    """Sizes on both sides of where another kernel or tile begins; none without symbols."""
    if not source.symbols:
        return
    main, *others = reversed(list(source.symbols))
    most = source.symbols[main]
    sizes = [size for size in BORDERS if most is None or size <= most]
    for number, size in enumerate(sizes):
        rest = {name: limited(source, name, (1, 2, 9)[number % 3]) for name in others}
        yield {name: {main: size, **rest}[name] for name in source.symbols}


def limited(source: External, name: str, size: int) -> int:
    """A size that a symbol may have."""
    return min(size, source.symbols[name] or size)
