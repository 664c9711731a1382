"""What `torch.compile(..., options={...})` may say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import InputError, did_you_mean
from ...language.known import listed
from ...partition import check_target

if TYPE_CHECKING:
    from ...language.known import Composites


@dataclass(frozen=True)
class Options:
    """As `selfbyoc.build` takes them, and three of this backend."""

    target: str | None = None
    composites: Composites = None
    verify: bool = False
    verify_timeout: float = 300.0
    guard: Any = None
    cache: bool | str | Path = True
    freeze: bool = field(default=True, metadata={"own": True})  # weights are constants
    compare: bool = field(default=True, metadata={"own": True})  # each library once with PyTorch
    on_library: Callable[[Any], object] | None = field(default=None, metadata={"own": True})

    def for_build(self) -> dict[str, Any]:
        """The arguments of `build`."""
        return {f.name: getattr(self, f.name) for f in fields(self) if not f.metadata.get("own")}


def options_of(given: Mapping[str, Any] | None) -> Options:
    """The options, or an InputError that names the one that there is not."""
    known = [f.name for f in fields(Options)]
    for name in given or ():
        if name not in known:
            raise InputError(
                f"options: expected some of {', '.join(known)}, found {name!r}"
                f"{did_you_mean(str(name), known)}"
            )
    found = Options(**(given or {}))
    if found.target is not None:
        check_target(found.target)
    return replace(found, composites=listed(found.composites))  # read once for each library
