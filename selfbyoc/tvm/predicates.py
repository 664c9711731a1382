"""What blocks of Relax are tested for before they run."""

from __future__ import annotations

from collections.abc import Callable

from . import GENERATION, BlockRealize, tir
from .rewrite import block_with
from .types import Attrs, PrimExpr, PrimFunc, Stmt

if GENERATION == "relax":
    import tvm_ffi

_TEST = "tefuse.test"


def with_predicates(node: Stmt, change: Callable[[PrimExpr], PrimExpr]) -> Stmt:
    """A statement whose blocks run where `change` of their predicates holds."""

    def changed(realize: Stmt) -> Stmt:
        return BlockRealize(realize.iter_values, change(realize.predicate), realize.block)

    return tvm_ffi.structural_map(node, ((BlockRealize, changed),))


def without_tests(func: PrimFunc) -> PrimFunc:
    """A PrimFunc whose blocks run always, what they are tested for written beside them; the other
    way round: `tested_again`. Of memory that is written under a test of a symbolic size
    CompactBufferAllocation (0.27) finds no bound and makes 2**31 - 1 elements of it.
    """

    def hidden(realize: Stmt) -> Stmt:
        if isinstance(realize.predicate, tir.IntImm):
            return realize
        notes = {**realize.block.annotations, _TEST: realize.predicate}
        block = _with_notes(realize.block, notes)
        return BlockRealize(realize.iter_values, tir.const(1, "bool"), block)

    return tvm_ffi.structural_map(func, ((BlockRealize, hidden),))


def tested_again(func: PrimFunc) -> PrimFunc:
    """A PrimFunc that was `without_tests`, with them."""

    def shown(realize: Stmt) -> Stmt:
        notes = dict(realize.block.annotations)
        if _TEST not in notes:
            return realize
        test = notes.pop(_TEST)
        block = _with_notes(realize.block, notes)
        return BlockRealize(realize.iter_values, test, block)

    return tvm_ffi.structural_map(func, ((BlockRealize, shown),))


def _with_notes(block: Stmt, notes: Attrs) -> Stmt:
    kept = block.reads, block.writes, block.body, block.alloc_buffers
    return block_with(block, *kept, notes=notes)
