"""The names that a model's inputs and outputs had where it comes from; they travel with the
module. TVM's frontends spell some inputs otherwise, and forget those of outputs.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from .. import structured
from .._tvm import module_with_attr
from ..errors import InputError

NAMES = "tefuse.names"  # the module's attribute that carries them


@dataclass(frozen=True)
class Names:
    """In order; empty where the source has none."""

    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()


def with_names(mod: Any, names: Names) -> Any:
    """The module that knows them; as it is where there are none."""
    if names == Names():
        return mod
    return module_with_attr(mod, NAMES, json.dumps(asdict(names)))


def names_of(mod: Any) -> Names:
    """Those of a module. Raises InputError for what is no list of names."""
    text: Any = mod.attrs.get(NAMES) if mod.attrs is not None else None
    if text is None:
        return Names()
    try:
        return structured.read(Names, str(text))
    except ValueError as err:
        raise InputError(f"mod: its attribute {NAMES} is damaged: {err}") from err
