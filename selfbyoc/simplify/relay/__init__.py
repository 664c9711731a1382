"""Relay: main, simplified; the rewritings in the order in which they run."""

from __future__ import annotations

from tvm import relay

from ...tvm import tvm
from .float_weights import with_float_weights
from .folding import fold
from .halves import with_floats
from .inline import without_primitives
from .levels import levels_as_read
from .one_row import images_of_one_row
from .taps import taps_that_meet

__all__ = ["simplified", "with_float_weights"]


def simplified(mod: tvm.IRModule) -> tvm.IRModule:
    """A module, simplified and typed; the one that is given is not touched."""
    main = without_primitives(mod["main"])
    if not main.same_as(mod["main"]):
        mod = tvm.IRModule(dict(mod.functions.items()), mod.type_definitions)
        mod.update_func(mod.get_global_var("main"), main)
    typed = fold(levels_as_read(with_floats(relay.transform.InferType()(mod))))
    return taps_that_meet(images_of_one_row(typed))
