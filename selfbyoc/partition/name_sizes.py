"""Names for what Relay calls `Any`."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import InputError
from ..tvm import GENERATION
from ..tvm.types import IRModule
from . import check_module


def name_sizes(mod: IRModule, names: Mapping[str, Mapping[int, str]]) -> IRModule:
    """A Relay module whose unknown extents have names: those of one name are one size.

    mod    with `relay.Any` among the extents of its inputs; it is not changed
    names  input -> axis -> name: `{"query": {1: "length"}, "key": {1: "length"}}`

    What the types want to be equal needs no name. What they leave open, such as the lengths of
    queries and of keys, has kernels for any two sizes, if it has some; named, for one size.

    Raises InputError for an input, or an axis, that there is not or whose extent is known, and for
    sizes that the types do not let be equal.
    """
    check_module(mod)
    if GENERATION == "relax":
        raise InputError("mod: the symbols of a Relax module have names already")
    from ..ir.relay.told import told

    return told(mod, names)
