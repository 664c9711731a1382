"""Rules of canonicalisation: ops that change nothing, such as a dropout at inference.

They are read as part of the op before them or, where others read that one too, of their reader.
"""

from __future__ import annotations

from dataclasses import replace

from ...graph import OpCall
from .rewriter import Rewrite, Rewriter, absorb

DROPOUT = "nn.dropout"
# Ops that importers put between two others.
SHAPING = frozenset({"broadcast_to", "cast", "reshape", "transpose"})


def _is_identity(rw: Rewriter, call: OpCall) -> bool:
    if call.kind == DROPOUT:
        mask = call.outputs[1:]  # nobody reads it at inference
        return not any(rw.graph.users(v) or rw.graph.is_output(v) for v in mask)
    if call.kind not in SHAPING or not call.sources:
        return False
    (before,), (after,) = call.inputs[:1], call.outputs
    same = before.is_static and (before.shape, before.dtype) == (after.shape, after.dtype)
    if call.kind == "transpose":
        return same and tuple(call.attrs["axes"]) == tuple(range(before.ndim))
    return same


def is_taken_in(rw: Rewriter, call: OpCall) -> bool:
    """Whether the only reader of an op's result changes nothing, and becomes part of it."""
    readers = rw.graph.users(call.outputs[0])
    return rw.only_reader(call.outputs[0]) and _is_identity(rw, readers[0])


def identity_behind(rw: Rewriter, call: OpCall) -> Rewrite | None:
    """The op before takes the identity in."""
    if call.kind not in SHAPING and call.kind != DROPOUT:
        return None
    before = rw.producer(call.inputs[0])
    if before is None or not before.sources or len(before.outputs) != 1:
        return None
    if not _is_identity(rw, call):
        _decline(rw, before, call)
        return None
    if not rw.only_reader(call.inputs[0]):
        return None
    sources = (*before.sources, *call.sources)
    return [replace(before, outputs=call.outputs[:1], sources=sources)], [before]


def _decline(rw: Rewriter, before: OpCall, call: OpCall) -> None:
    readers = rw.graph.users(call.outputs[0])
    if call.sources and len(readers) == 1:
        change = f"{call.inputs[0].type} to {call.outputs[0].type}"
        if call.kind == "transpose":
            change = f"the axes to {call.attrs['axes']}"
        lies = f"{call.name} lies between {before.name} and {readers[0].name}"
        rw.decline(call, before.kind, f"{lies} and changes {change}")


def identity_before(rw: Rewriter, call: OpCall) -> Rewrite | None:
    """The reader takes the identity in; a dropout, which has two results, only the op before."""
    if not call.sources:
        return None
    for value in call.inputs:
        found = rw.producer(value)
        if found is None or value is not found.outputs[0] or not rw.only_reader(value):
            continue
        if found.kind == DROPOUT or not _is_identity(rw, found):
            continue
        inputs = tuple(found.inputs[0] if v is value else v for v in call.inputs)
        return [absorb(call, [found], inputs=inputs)], [found]
    return None
