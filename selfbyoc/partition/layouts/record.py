"""What `optimize_layouts` did to a module, as the module says it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from ...common import structured
from ...errors import InputError
from ...tvm import tvm

LAYOUTS = "tefuse.layouts"  # the module's attribute that carries it


@dataclass(frozen=True)
class Layouts:
    """Transposes that move something, before and after; constants are not counted."""

    written: int = 0
    left: int = 0
    bytes_written: int = 0
    bytes_left: int = 0
    moved: int = 0  # ops that have another order of axes now
    reason: str = ""  # why nothing was done
    is_open: bool = False  # sizes that are not known when compiling count as 1

    def to_json(self) -> str:
        """As JSON."""
        return json.dumps(asdict(self))

    def __str__(self) -> str:
        if self.reason:
            return f"unchanged: {self.reason}"
        return (
            f"{self.written} transposes before, {self.left} now; {_amount(self.bytes_written)} "
            f"moved by them before, {_amount(self.bytes_left)} now; {self.moved} ops have another "
            f"order of axes{'; bytes are with 1 for each open size' if self.is_open else ''}"
        )


def _amount(size: int) -> str:
    if size < 10_000:
        return f"{size} bytes"
    return f"{size / 1e3:.1f} kB" if size < 1e6 else f"{size / 1e6:.2f} MB"


def told_layouts(mod: tvm.IRModule) -> str:
    """What was done to a module; empty if it was not asked for."""
    text: Any = mod.attrs.get(LAYOUTS) if mod.attrs is not None else None
    if text is None:
        return ""
    try:
        return str(structured.read(Layouts, str(text)))
    except ValueError as err:
        raise InputError(f"mod: its attribute {LAYOUTS} is damaged: {err}") from err
