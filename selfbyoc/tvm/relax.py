"""What Relax knows of this package as soon as both are imported: the codegen hook by its name, our
errors, and one stack of BlockBuilders for each thread.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import tvm
import tvm_ffi
from tvm import relax

from .. import errors
from ..common.upper import upper
from .tags import tags_of_each_thread
from .types import BlockBuilder, Expr, Function, Module


class _OwnStack(threading.local):
    """A list that each thread sees empty, and fills for itself."""

    def __init__(self) -> None:
        self.items: list[Any] = []

    def append(self, item: BlockBuilder) -> None:
        """Put one on top."""
        self.items.append(item)

    def pop(self) -> BlockBuilder:
        """Take the top one off."""
        return self.items.pop()

    def __getitem__(self, place: int) -> BlockBuilder:
        return self.items[place]

    def __len__(self) -> int:
        return len(self.items)


def _builders_of_each_thread() -> None:
    """The stack of BlockBuilders that are writing a function, one for each thread.

    0.27 has one for the process: of two threads that write models (or import them, or partition)
    one gets the other's builder from `BlockBuilder.current()`, and an empty AssertionError. A lock
    of ours would not hold back what a user's own thread imports meanwhile.
    """
    if isinstance(relax.BlockBuilder._stack, _OwnStack):
        return
    stack = _OwnStack()
    stack.items.extend(relax.BlockBuilder._stack)  # imported while this thread writes a function
    relax.BlockBuilder._stack = stack


def _codegen(functions: Sequence[Function], options: object, constants: object) -> list[Module]:
    """`relax.ext.tefuse`, which RunCodegen calls."""
    modules: list[Module] = upper("codegen.relax:codegen")(functions, options, constants)
    return modules


def _settled(builder: BlockBuilder, call: Expr) -> Expr:
    """How LegalizeOps writes a call of a kernel of ours."""
    return upper("codegen.relax.calls:settled")(builder, call)


def register() -> None:
    """Make the hook known to TVM, and our errors to its FFI, which knows others as RuntimeError."""
    _builders_of_each_thread()
    tags_of_each_thread()
    for error in errors.ALL:
        tvm_ffi.register_error(f"selfbyoc.{error.__name__}", error)
    tvm.register_global_func("relax.ext.tefuse", _codegen, override=True)
    if tvm.ir.Op.get("relax.call_dps_packed").get_attr("FLegalize") is None:
        # An extern function has no shape, and LegalizeOps passes over calls with such arguments.
        tvm.ir.register_op_attr("relax.call_dps_packed", "RequiresArgumentShapes", False)
        tvm.ir.register_op_attr("relax.call_dps_packed", "FLegalize", _settled)
