"""Scores that a softmax does not see, by a condition, are scores and a mask that is added.

    softmax(where(seen, scores, -3e38) + mask)  ->  softmax(scores + where(seen, 0, -3e38) + mask)

GPT-2, GPT-J, GPT-Neo and Bloom hide so what comes later, in all files that were exported before
2024. A float32 below 1e28 and one below -1e36 are the second one, to the last bit; so are a finite
score and minus infinity. (A score that is hidden and no finite number is not hidden then.)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..ir.rewriting import Editor, Made, are_same, dtype, is_known
from ..tvm.types import Expr

HIDDEN = -1e36  # and below
MOST_MASKS = 2  # added after it
SCALES = {"multiply": np.multiply, "divide": np.divide}


@dataclass(frozen=True)
class _Choice:
    """Scores where they are seen (or are not, where `is_turned`), elsewhere a number."""

    scores: Expr
    condition: Expr
    number: np.ndarray
    is_turned: bool


def hidden_scores(made: Made, to: Editor) -> Expr | None:
    """A softmax of scores that a condition hides."""
    if made.kind != "softmax":
        return None
    found = _added(made.args[0], to, MOST_MASKS)
    return None if found is None else to.again(made, [found])


def _added(x: Expr, to: Editor, masks: int) -> Expr | None:
    """The same with a mask in place of the choice; None where there is none."""
    made = to.made(x)
    if made is not None and made.kind == "add" and masks:
        found = _added(made.args[0], to, masks - 1)
        return None if found is None else to.again(made, [found, made.args[1]])
    choice = _choice(made, to)
    if choice is None or choice.number > HIDDEN:
        return None
    sides = [np.zeros((), "float32"), choice.number.astype("float32")]
    sides = sides[::-1] if choice.is_turned else sides
    known = to.array(choice.condition)
    if known is not None:
        return to.emit("add", choice.scores, to.constant(np.where(known, *sides)))
    mask = to.call("where", choice.condition, *map(to.constant, sides))
    return to.emit("add", choice.scores, mask)


def _choice(made: Made | None, to: Editor) -> _Choice | None:
    """Of a `where`, perhaps scaled by a number above 0."""
    if made is not None and made.kind in SCALES:
        factor, inner = to.array(made.args[1]), to.made(made.args[0])
        if factor is None or factor.size != 1 or factor.min() <= 0:
            return None
        found = _choice(inner, to)
        if found is None:
            return None
        number = SCALES[made.kind](found.number, factor.reshape(()).astype("float32"))
        return replace(found, scores=to.again(made, [found.scores, made.args[1]]), number=number)
    return _of_where(made, to) if made is not None and made.kind == "where" else None


def _of_where(made: Made, to: Editor) -> _Choice | None:
    condition, *sides = made.args
    shape = to.shape(made.call)
    for n, scores in enumerate(sides):
        number = to.array(sides[1 - n])
        if number is None or number.size != 1 or dtype(to, scores) != "float32":
            continue
        if is_known(shape) and are_same(to.shape(scores) or [], shape):
            return _Choice(scores, condition, number.reshape(()), bool(n))
    return None
