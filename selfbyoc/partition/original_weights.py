"""Weights as they were before they were packed, kept with the module, so that `unfuse` can put them
back.

They cannot be computed from what they were packed into (Winograd's transform rounds). They are the
constants of the module that was partitioned, not copies, and known by what they became: whoever
changes the module in between need not know of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np

from ..errors import InputError
from ..tvm import tvm
from ..tvm.types import Expr

ORIGINALS = "tefuse.originals"  # the module's attribute: key -> the constant in the graph IR


def key_of(packed: np.ndarray, unpacked_type: str) -> str:
    """Of a weight of this type that was packed into this array."""
    digest = hashlib.sha256(np.ascontiguousarray(packed).view(np.uint8).data).hexdigest()
    return f"{unpacked_type} {packed.dtype}{list(packed.shape)} {digest}"


def with_originals(mod: tvm.IRModule, originals: Mapping[str, Expr]) -> tvm.IRModule:
    """The module with the constants that were replaced by packed ones."""
    return mod.with_attr(ORIGINALS, dict(originals)) if originals else without_originals(mod)


def without_originals(mod: tvm.IRModule) -> tvm.IRModule:
    """The module without them, as it is built: an executor factory keeps its module."""
    return mod if not originals_of(mod) else mod.without_attr(ORIGINALS)


def originals_of(mod: tvm.IRModule) -> dict[str, Expr]:
    """Key -> constant."""
    kept = mod.attrs.get(ORIGINALS) if mod.attrs is not None else None
    return {} if kept is None else {str(key): constant for key, constant in kept.items()}


class Unpack:
    """From a packed constant back to the one that it was."""

    def __init__(self, mod: tvm.IRModule) -> None:
        self.originals = originals_of(mod)

    def __call__(self, symbol: str, packed: np.ndarray | None, unpacked_type: str) -> Expr:
        """The original constant; `packed` is what main passes, None for what is no constant."""
        owner = f"unfuse: {symbol} takes a packed weight of type {unpacked_type}"
        if packed is None:
            raise InputError(
                f"{owner}, which is no constant of main any more; unfuse before the pass that "
                f"took it out"
            )
        key = key_of(packed, unpacked_type)
        if key not in self.originals:
            raise InputError(
                f"{owner}, and the module does not hold it unpacked; partition again with "
                f"pack=False, or without this composite"
            )
        return self.originals[key]
