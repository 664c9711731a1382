"""What lies between the kernels joins them: elementwise ops that no composite took become part of
the kernel before them, or of the one after them.

After all composites have chosen, so that no pattern loses an op of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from ..graph import OpCall, OpGraph
from ..ir.rules.padded import PAD, why_outside
from ..language.composite import Refused
from ..language.known import is_builtin
from ..language.match.epilogue import Around, is_elementwise, with_epilogue, with_prologue
from ..language.match.joining import CONDITION
from ..language.match.match import Match
from ..tvm.types import Expr
from .records import of_match
from .refusal import OUTSIDE, Refusal, apart, not_cut_out
from .report import MATCHED, REFUSED, Record

Refuse = Callable[[Match], Refusal | None]


def with_around(
    graph: OpGraph,
    chosen: Sequence[Match],
    records: Sequence[Record],
    refused: Mapping[tuple[str, str], Refusal],
    block_of: Mapping[Expr, int],
) -> tuple[list[Match], list[Record]]:
    """The matches with the elementwise ops around them, their records, and why others stay out."""

    def refuse(match: Match) -> Refusal | None:
        return refused.get((match.composite.name, match.root.name)) or apart(match, block_of)

    found, outside = _joined(graph, chosen, refuse)
    new = {
        (old.composite.name, old.root.name): match
        for old, match in zip(chosen, found, strict=True)
        if match is not old
    }
    told = []
    for record in records:
        match = new.get((record.composite, record.root)) if record.status == MATCHED else None
        if match is not None:
            record = of_match(graph, replace(record, root=match.root.name), match)
        told.append(record)
    ends = {(m.composite.name, m.root.name) for m in new.values()}
    # A pattern that was turned down where the kernel ends now is no news.
    told = [r for r in told if r.status == MATCHED or (r.composite, r.root) not in ends]
    return found, [*told, *outside]


def _joined(
    graph: OpGraph, chosen: Sequence[Match], refuse: Refuse
) -> tuple[list[Match], list[Record]]:
    """The matches with what is elementwise around them, and why the rest of it stays outside.
    `refuse` says why a larger match must not be taken.
    """
    taken = {call for match in chosen for call in match.ops}
    around = Around(graph, lambda call: call not in taken)

    def refused(match: Match) -> Refusal | None:
        return refuse(match) or not_cut_out(graph, match) or _turned_down(match)

    def grown(match: Match, ways: Callable[..., Match]) -> Match:
        larger = ways(around, match, refused)
        taken.update(larger.ops)
        return larger

    found = [grown(match, _with_after) for match in chosen]  # an epilogue costs nothing: first
    found = [grown(match, _with_before) for match in found]
    told = [_outside(around, match, refused) for match in found]
    return found, [record for records in told for record in records]


def _turned_down(match: Match) -> Refusal | None:
    """What the composite says to ops after its result."""
    asked = match.composite.epilogue
    if isinstance(asked, bool) or not match.after:
        return None
    try:
        asked(match)
    except Refused as refusal:
        return Refusal(OUTSIDE, str(refusal))
    return None


def _with_after(around: Around, match: Match, refused: Refuse) -> Match:
    ways = around.epilogues(match) if match.composite.absorbs_after else ()
    made = (with_epilogue(match, ops, around.graph) for ops in ways)
    return next((larger for larger in made if refused(larger) is None), match)


def _with_before(around: Around, match: Match, refused: Refuse) -> Match:
    for name in match.composite.absorbs_before:
        ops = around.prologue(match, name)
        larger = with_prologue(match, name, ops, around.graph)
        match = larger if ops and refused(larger) is None else match
    return match


def _outside(around: Around, match: Match, refused: Refuse) -> Iterator[Record]:
    """Why elementwise ops beside a kernel are not in it."""
    graph, told, composite = around.graph, set(), match.composite
    if not (composite.epilogue or composite.prologue or is_builtin(composite)):
        return  # a user's own says in its pattern what it takes
    for value in match.outputs:
        for call in graph.users(value):
            if _is_left(around, call) and call not in told:
                told.add(call)
                reason = _why_not_after(around, match, call, refused)
                yield _record(match, call, f"{call.name} after it stays outside: {reason}")
    for name, value in match.own.args.items():
        producer = graph.producer(value)
        if name in match.before or producer is None:
            continue
        if producer.kind == PAD and around.is_free(producer) and _is_image(match, name):
            yield from _padded(match, producer)
        if not _is_left(around, producer):
            continue
        if value.ndim < 2 or not _is_image(match, name):
            continue
        reason = _why_not_before(around, match, name, producer, refused)
        yield _record(match, producer, f"{producer.name} before it stays outside: {reason}")


def _padded(match: Match, pad: OpCall) -> Iterator[Record]:
    for conv in match.of("conv2d")[:1]:
        why = why_outside(conv, pad) or "others read what it pads"
        told = _record(match, pad, f"{pad.name} before it stays outside: {why}")
        yield replace(told, hint=why)


def _is_left(around: Around, call: OpCall) -> bool:
    return is_elementwise(call) and around.is_free(call)


def _is_image(match: Match, name: str) -> bool:
    """Whether an argument is what the kernel computes on: the first of its pattern."""
    return name == match.composite.arg_names[0]


def _why_not_after(around: Around, match: Match, call: OpCall, refused: Refuse) -> str:
    if len(match.outputs) > 1:
        return "the kernel has several results"
    if not match.composite.absorbs_after:
        return f"{match.composite.name} takes no ops after its own"
    value = match.outputs[0]
    if why := around.why_not(call, value):
        return why
    if call.outputs[0].dtype == CONDITION:
        return "what is chosen by its condition did not join the kernel"
    chains = [ops for ops in around.epilogues(match) if call in ops]
    if chains:  # what reads the value besides is in the chain that was turned down
        return _refusal(match, [with_epilogue(match, c, around.graph) for c in chains], refused)
    readers = [u.name for u in around.graph.users(value) if u is not call]
    if around.graph.is_output(value):
        readers.append("the model's result")
    if readers:
        return f"{match.root.name} is also read by {', '.join(readers)}"
    return _refusal(match, [with_epilogue(match, (call,), around.graph)], refused)


def _why_not_before(around: Around, match: Match, name: str, call: OpCall, refused: Refuse) -> str:
    if name not in match.composite.absorbs_before:
        return f"{match.composite.name} takes no ops before its own"
    value = match.own.args[name]
    if why := around.why_not(call, value):
        return why
    inside = set(match.ops)
    readers = [u.name for u in around.graph.users(value) if u not in inside]
    if around.graph.is_output(value):
        readers.append("the model's result")
    if readers:
        return f"it is also read by {', '.join(readers)}"
    return _refusal(match, [with_prologue(match, name, (call,), around.graph)], refused)


def _refusal(match: Match, larger: Sequence[Match], refused: Refuse) -> str:
    found = next((why for one in larger if (why := refused(one)) is not None), None)
    return found.reason if found is not None else f"{match.composite.name} cannot hold it"


def _record(match: Match, call: OpCall, reason: str) -> Record:
    name, root = match.composite.name, match.root.name
    return Record(
        name, root, REFUSED, reason, cause=OUTSIDE, where=call.name, owner=name, owner_root=root
    )
