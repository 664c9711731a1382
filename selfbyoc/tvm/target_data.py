"""What a user writes for a target, as data that TVM takes."""

from __future__ import annotations

import json
from typing import Any

from .types import Attr


def target_data(target: Attr) -> Attr:
    """A dict from JSON or the command-line form; a dict as it is. Raises ValueError."""
    if isinstance(target, str):
        target = json.loads(target) if target.lstrip().startswith("{") else _parse_cli(target)
    _check_whole(target, "")
    return target


def _parse_cli(text: str) -> dict[str, str]:
    """`llvm -mcpu=znver4 -num-cores=2` as a dict; 0.27 refuses the command-line form."""
    kind, *options = text.split()
    found: dict[str, Any] = {"kind": kind}
    for option in options:
        name, _, value = option.lstrip("-").partition("=")
        if name in ("mattr", "keys", "libs"):
            found[name] = value.split(",")
        else:
            found[name] = int(value) if value.isdigit() else value
    return found


def _check_whole(data: Attr, where: str) -> None:
    """TVM 0.17 crashes on a target that holds a null."""
    if data is None:
        raise ValueError(f"{where or 'the target'} is None; expected a value")
    inner = data.items() if isinstance(data, dict) else ()
    for name, value in enumerate(data) if isinstance(data, (list, tuple)) else inner:
        _check_whole(value, f"{where}[{name!r}]")
