"""One lowered kernel: each access, each output, each parallel loop."""

from __future__ import annotations

from typing import Any

from ...tvm.types import PrimFunc
from .accesses import accesses
from .inside import inside
from .outputs import output, races
from .records import AGAIN, OPEN, Answer, Listed, Proof


def proof(lowered: PrimFunc, source: PrimFunc, outputs: int) -> Proof:
    """What can be proved of a function just before it becomes machine code; its last `outputs`
    arguments are the outputs.
    """
    seen = accesses(lowered, source)
    found = Proof()
    for text in seen.calls:
        found.listed.append(Listed(OPEN, "inside", "", "", text))
    for access in seen.found:
        answer = inside(access)
        _count(found.inside, answer)
        if not answer.ok:
            place = Listed(
                answer.means, "inside", access.root.name, str(access.index), answer.reason
            )
            found.listed.append(place)
    _outputs(found, seen, outputs)
    for root, answer in races(seen.found):
        _count(found.races, answer)
        if not answer.ok:
            found.listed.append(Listed(answer.means, "tasks apart", root.name, "", answer.reason))
    return found


def _count(counts: dict[str, int], answer: Answer) -> None:
    counts[answer.means] = counts.get(answer.means, 0) + 1


def _outputs(found: Proof, seen: Any, outputs: int) -> None:
    arguments = [root for root in seen.roots if root.position is not None]
    for root in sorted(arguments, key=lambda r: r.position)[len(arguments) - outputs :]:
        written = output(root, seen.found)
        found.outputs.append(written)
        if not written.whole.ok:
            answer = written.whole
            found.listed.append(Listed(answer.means, "written", root.name, "", answer.reason))
        elif written.times == AGAIN:
            text = f"{written.again} elements are written more than once"
            found.listed.append(Listed(OPEN, "written once", root.name, "", text))
