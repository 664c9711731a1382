"""Constant levels, and halves, that no kernel takes: nobody makes floats of them in each call. And
what says that a product may be of halves, where none is a kernel's.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from ..ir.generation import rewritten
from ..ir.rewriting import Editor, Made
from ..ops.few_bits import dequantised_groups
from ..tvm.types import Expr, IRModule
from .generation import fold
from .halves import is_half_weight
from .level_values import dequantised
from .levels import is_dequantized


def with_float_weights(mod: IRModule, taken: Collection[Expr]) -> IRModule:
    """A prepared module whose constant levels are floats, but for the calls that are taken; itself
    where there are none.
    """

    def floats(made: Made, to: Editor) -> Expr | None:
        if made.kind == "half_factor" and made.call not in taken:
            return made.args[0]
        found = None if made.call in taken else _known_floats(made, to)
        return None if found is None else to.constant(found.astype("float32"))

    done = rewritten(mod, floats)
    return mod if done.same_as(mod) else fold(done)


def _known_floats(made: Made, to: Editor) -> np.ndarray | None:
    """What a call makes of constant levels, or of halves."""
    known = [array for arg in made.args if (array := to.array(arg)) is not None]
    if len(known) < len(made.args):
        return None
    if is_dequantized(made):
        return dequantised(known, made.attrs["axis"])
    if made.kind == "dequantize_groups":
        return dequantised_groups(known, **made.attrs)
    return known[0] if is_half_weight(made, to) else None
