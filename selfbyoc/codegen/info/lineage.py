"""Which blocks of a function belong to which op, whatever became of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...tvm import Schedule, child_blocks, tvm
from ...tvm.types import PrimFunc
from .accesses import OP_LABEL, Accesses, BlockAccesses
from .op_record import OpInfo, Recorded


def labelled(func: PrimFunc, owners: Mapping[str, str]) -> PrimFunc:
    """The function with a label on each block whose name has an owner: `<op>:<position>`.

    TVM keeps a block's annotations in all that it makes of the block, but for copies and outer
    blocks.
    """
    begin = tvm.IRModule({"main": func.with_attr("global_symbol", "main")})  # as in apply.py: kept
    sch = Schedule(begin)
    for position, block in enumerate(child_blocks(sch)):
        name = str(sch.get(block).name_hint)
        if name in owners:
            sch.annotate(block, OP_LABEL, f"{owners[name]}:{position}")
    done = sch.mod["main"]
    return done if "global_symbol" in _names(func) else done.without_attr("global_symbol")


def _names(func: PrimFunc) -> list[str]:
    return [] if func.attrs is None else [str(n) for n in func.attrs.keys()]  # noqa: SIM118


def block_owners(recorded: Recorded, now: Accesses) -> dict[str, tuple[str, ...]]:
    """Op -> its blocks in order.

    By the labels; a block without one (a cache, an outer block) belongs to the op whose value it
    holds. Names are asked only if no label is left.
    """
    owner = _by_label(recorded, now) or _by_name(recorded, now)
    found: dict[str, list[str]] = {}
    for position, block in enumerate(now.blocks):
        if position in owner:
            found.setdefault(owner[position], []).append(block.name)
    return {op: tuple(names) for op, names in found.items()}


def _by_name(recorded: Recorded, now: Accesses) -> dict[int, str]:
    owners = {name: info.name for info in recorded.ops for name in info.blocks}
    return {i: owners[b.name] for i, b in enumerate(now.blocks) if b.name in owners}


def _by_label(recorded: Recorded, now: Accesses) -> dict[int, str]:
    known = {info.name for info in recorded.ops}
    owner = {i: b.op for i, b in enumerate(now.blocks) if b.op in known}
    while owner:
        new = dict(_inherited(now, owner))
        if not new:
            break
        owner.update(new)
    return owner


def _inherited(now: Accesses, owner: Mapping[int, str]) -> Iterator[tuple[int, str]]:
    """Blocks that can be told from those around them: by what is inside, by what they write, by
    whose value they copy, and at last by who reads them.
    """
    blocks = list(enumerate(now.blocks))
    writers: dict[int, str] = {}
    readers: dict[int, str] = {}
    for i, block in reversed(blocks):
        if i in owner:
            writers.update({a.buffer: owner[i] for a in block.stores})
            readers.update({a.buffer: owner[i] for a in block.loads})
    left = [(i, b) for i, b in blocks if i not in owner]
    for rule in (_inside, _same_result, _copied, _read_by):
        found = [(i, op) for i, b in left if (op := rule(b, writers, readers))]
        if found:
            yield from found
            return


def _inside(block: BlockAccesses, _: Mapping[int, str], __: Mapping[int, str]) -> str:
    return next((label.rpartition(":")[0] for label in block.inside if label), "")


def _same_result(block: BlockAccesses, writers: Mapping[int, str], _: Mapping[int, str]) -> str:
    return next((writers[a.buffer] for a in block.stores if a.buffer in writers), "")


def _copied(block: BlockAccesses, writers: Mapping[int, str], _: Mapping[int, str]) -> str:
    return next((writers[a.buffer] for a in block.loads if a.buffer in writers), "")


def _read_by(block: BlockAccesses, _: Mapping[int, str], readers: Mapping[int, str]) -> str:
    return next((readers[a.buffer] for a in block.stores if a.buffer in readers), "")


def computed_in(info: OpInfo, recorded: Recorded, now: Accesses) -> str:
    """The op in whose blocks this one is computed, if it has none of its own."""
    present = {b.op for b in now.blocks if b.op}
    if info.name in present or not present:
        return info.within
    if info.within:
        return info.within
    mine = [b for b in recorded.accesses.blocks if b.op == info.name]
    if not mine:
        return ""
    return _next(mine[-1], recorded.accesses, present, True) or _next(
        mine[0], recorded.accesses, present, False
    )


def _next(block: BlockAccesses, then: Accesses, present: set[str], forward: bool) -> str:
    """The nearest op that is still there, among those that read the block or that it reads."""
    if forward:
        mine = {a.buffer for a in block.stores}
        around = [b for b in then.blocks if any(a.buffer in mine for a in b.loads)]
    else:
        mine = {a.buffer for a in block.loads}
        around = [b for b in then.blocks if any(a.buffer in mine for a in b.stores)]
    for other in around:
        if other.op in present:
            return other.op
    return next((op for b in around if (op := _next(b, then, present, forward))), "")
