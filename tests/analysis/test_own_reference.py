"""A composite's own reference: what `verify` and `lint` compare with it, and what they say where
they do not.
"""

import numpy as np
import pytest

from selfbyoc import Case, Composite, either, elementwise, lint, many, op, verify
from selfbyoc.ir.emit import emit

SHAPES = {"x": (9, 9), "y": (9, 9)}


def wrong(**named):
    return np.zeros(1)


def summed(**attrs):
    return lambda x, y: op.relu(op.sum(op.add(x, y), **attrs))


def relu(a):
    return np.maximum(a, 0)


# A pattern, and what it computes.
PATTERNS = {
    "all": (summed(), lambda x, y: relu((x + y).sum())),
    "axis=-1": (summed(axis=-1), lambda x, y: relu((x + y).sum(-1))),
    "axis=1": (summed(axis=1), lambda x, y: relu((x + y).sum(1))),
    "axis=(0,)": (summed(axis=(0,)), lambda x, y: relu((x + y).sum(0))),
    "axis=[0, 1]": (summed(axis=[0, 1]), lambda x, y: relu((x + y).sum())),
    "keepdims": (
        summed(axis=-2, keepdims=True), lambda x, y: relu((x + y).sum(0, keepdims=True))
    ),
    "max": (lambda x, y: op.add(op.max(x, axis=-1, keepdims=True), y),
            lambda x, y: x.max(-1, keepdims=True) + y),
    "mean": (lambda x, y: op.add(op.mean(x, axis=0), y), lambda x, y: x.mean(0) + y),
    "softmax": (
        lambda x, y: op.relu(op.softmax(op.add(x, y), axis=-2)),
        lambda x, y: np.exp(x + y) / np.exp(x + y).sum(0, keepdims=True),
    ),
    "clip": (
        lambda x, y: op.clip(op.add(x, y), a_min=-1, a_max=0.5),
        lambda x, y: np.clip(x + y, -1, 0.5),
    ),
    "a branch for each": (
        lambda x, y: op.relu(op.concatenate(many(lambda arg: op.add(x, arg("y"))), axis=1)),
        lambda x, **ys: relu(np.concatenate([x + y for y in ys.values()], 1)),
    ),
    "an option without the argument": (
        lambda x, y, z: either(op.add(op.tanh(op.add(x, y)), z), op.tanh(op.add(x, y))),
        lambda x, y, z=0: np.tanh(x + y) + z,
    ),
}  # fmt: skip
PROGRAMS = {
    "a branch for each": lambda x, y: op.relu(op.concatenate([op.add(x, y), op.add(x, x)], axis=1)),
}


def declared(name, reference):
    case = Case(PROGRAMS.get(name), **SHAPES)
    return Composite("own", PATTERNS[name][0], reference=reference, cases=(case,), why="a test")


def findings(composite):
    return [f.kind for f in lint(composite) if "reference" in f.kind]


@pytest.mark.parametrize("name", PATTERNS)
def test_a_wrong_reference_is_found(name):
    """An axis as an int was read as an attribute that the pattern does not say."""
    assert findings(declared(name, PATTERNS[name][1])) == []
    assert findings(declared(name, wrong)) == ["reference-differs"]


@pytest.mark.parametrize("name", ["axis=-1", "axis=(0,)"])
def test_verify_finds_it_too(name):
    kept = {"kinds": ["random"], "isolate": False}
    mod = emit(PATTERNS[name][0], SHAPES)
    assert verify(mod, composites=[declared(name, PATTERNS[name][1])], **kept).ok
    found = verify(mod, composites=[declared(name, wrong)], **kept)
    assert found.summary.startswith("1 kernel: 1 wrong; 0 runs agree")
    assert "the composite's reference gives [(1,)], the kernel" in str(found)


def test_the_reference_of_what_goes_on_after_it():
    """The kernel has a bias more than the pattern, which the reference knows nothing of."""

    def program(x, y, b):
        return op.bias_add(op.relu(op.dense(x, y)), b)

    def own(reference):
        cases = (Case(program, **SHAPES, b=(9,)),)
        pattern = lambda x, y: op.relu(op.dense(x, y))  # noqa: E731
        return Composite("own", pattern, None, reference, cases=cases, epilogue=True)

    assert findings(own(lambda x, y: relu(x @ y.T))) == []
    assert findings(own(lambda x, y: relu(x @ y))) == ["reference-differs"]
    mod = emit(program, {**SHAPES, "b": (9,)})
    found = verify(mod, composites=[own(lambda x, y: relu(x @ y))], kinds=["random"], isolate=False)
    assert [v.status for v in found.verdicts] == ["wrong"]


UNREAD = {
    "the pattern leaves axis of softmax open, here 0": (
        lambda x: op.relu(op.softmax(x)), lambda x: op.relu(op.softmax(x, axis=0))
    ),
    "the match is another alternative of the pattern than relu": (
        lambda x: either(op.relu(op.tanh(x)), op.exp(op.tanh(x))),
        lambda x: op.exp(op.tanh(x)),
    ),
    "this match has no argument 'y'": (
        lambda x, y: either(op.add(op.tanh(op.sqrt(x)), y), op.tanh(op.sqrt(x))),
        lambda x: op.tanh(op.sqrt(x)),
    ),
    "an `elementwise` of the pattern stands for ops": (
        lambda x: elementwise(op.softmax(x)), lambda x: op.relu(op.softmax(x))
    ),
}  # fmt: skip


@pytest.mark.parametrize("why", UNREAD)
def test_what_is_not_compared_is_said(why):
    pattern, program = UNREAD[why]
    takes_y = "'y'" in why
    reference = (lambda x, y: x) if takes_y else (lambda x: x)
    composite = Composite("own", pattern, reference=reference, cases=(Case(program, x=(9, 9)),))
    (unchecked,) = [f for f in lint(composite) if f.kind == "reference-unchecked"]
    assert why in unchecked.message
    found = verify(
        emit(program, {"x": (9, 9)}), composites=[composite], kinds=["random"], isolate=False
    )
    assert found.summary.endswith("; not compared: the reference of own")
    assert why in str(found)
