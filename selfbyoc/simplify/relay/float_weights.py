"""Relay: levels of constants that no kernel takes."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ...ir.relay.emit import constant
from ...ir.relay.walk import postorder, rebuild
from ...ops.few_bits import dequantised_groups
from ...tvm import constant_numpy, tvm
from ..levels import dequantised
from .exprs import array_of, name_of, with_main
from .folding import fold
from .halves import is_half_weight
from .levels import is_dequantized


def with_float_weights(mod: tvm.IRModule, taken: Collection[Any]) -> tvm.IRModule:
    """A prepared module whose constant levels are floats, but for those that are taken; itself
    where there are none.
    """
    new: dict[Any, Any] = {}
    for expr in postorder(mod["main"].body):
        found = None if expr in taken else _known_floats(expr)
        new[expr] = rebuild(expr, new) if found is None else found
    done = with_main(mod, new[mod["main"].body])
    return mod if done.same_as(mod) else fold(done)


def _known_floats(expr: Any) -> Any | None:
    """Constant levels as floats."""
    if is_half_weight(expr):
        return constant(constant_numpy(expr.args[0]).astype("float32"))
    is_of_groups = name_of(expr) == "selfbyoc.dequantize_groups"
    if not is_of_groups and not is_dequantized(expr):
        return None
    arrays = [array_of(arg) for arg in expr.args]
    if any(array is None for array in arrays):
        return None
    if not is_of_groups:
        return constant(dequantised(arrays, int(expr.attrs.axis)))
    told = {name: int(expr.attrs[name]) for name in ("bits", "group")}
    return constant(dequantised_groups(arrays, **told).astype("float32"))
