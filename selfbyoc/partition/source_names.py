"""The names that a model's inputs, outputs and weights had where it comes from; they travel with
the module. TVM's frontends spell some inputs otherwise, and forget those of the rest.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..common import structured
from ..errors import InputError
from ..tvm import module_with_attr
from ..tvm.types import IRModule

NAMES = "tefuse.names"  # the module's attribute that carries them


_SAMPLES = 64  # elements of a weight that it is known by


@dataclass(frozen=True)
class Names:
    """In order; empty where the source has none. Weights are (key, name).

    ones   inputs that the module takes to be 1 everywhere
    """

    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    weights: tuple[tuple[str, str], ...] = ()
    ones: tuple[str, ...] = ()

    def of_weight(self, array: np.ndarray) -> str:
        """What the source calls a weight, which a frontend may have transposed; may be empty."""
        keys = _key(array), _key(array.T)
        return " or ".join(name for key, name in self.weights if key in keys)


def named_weights(found: Iterable[tuple[str, np.ndarray]]) -> tuple[tuple[str, str], ...]:
    """For `Names`: the names of matrices and more of float32."""
    return tuple((_key(a), name) for name, a in found if a.dtype == np.float32 and a.ndim > 1)


def _key(array: np.ndarray) -> str:
    """Shape and some elements: an import should not have to read all weights once more."""
    flat = array.reshape(-1)
    some = np.ascontiguousarray(flat[:: max(1, flat.size // _SAMPLES)])
    return f"{list(array.shape)} {zlib.crc32(some.tobytes()):08x}"


def with_names(mod: IRModule, names: Names) -> IRModule:
    """The module that knows them; as it is where there are none."""
    if names == Names():
        return mod
    return module_with_attr(mod, NAMES, json.dumps(asdict(names)))


def names_of(mod: IRModule) -> Names:
    """Those of a module. Raises InputError for what is no list of names."""
    text: Any = mod.attrs.get(NAMES) if mod.attrs is not None else None
    if text is None:
        return Names()
    try:
        return structured.read(Names, str(text))
    except ValueError as err:
        raise InputError(f"mod: its attribute {NAMES} is damaged: {err}") from err
