"""What Relay knows of this package as soon as both are imported: the codegen hook by its names."""

from __future__ import annotations

import tvm

from ..common.upper import upper
from .tags import tags_of_each_thread
from .types import Function, Module, NDArray


def _codegen(function: Function) -> Module:
    """`relay.ext.tefuse`, which relay.build calls for each external function."""
    return upper("codegen.relay:codegen")(function)


def _no_constants(function: Function, symbol: str) -> dict[str, NDArray]:
    """`relay.ext.tefuse.constant_updater`: weights are arguments, so no function owns any."""
    return {}


def register() -> None:
    """Make the hook known to TVM."""
    tags_of_each_thread()
    tvm.register_func("relay.ext.tefuse", _codegen, override=True)
    tvm.register_func("relay.ext.tefuse.constant_updater", _no_constants, override=True)
