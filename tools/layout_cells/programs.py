"""The programs: the first cases of every built-in composite, and two blocks of networks."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import selfbyoc
from selfbyoc import op
from selfbyoc.language.case import Case
from selfbyoc.tvm import GENERATION

CASES = 2  # of each composite
_MOMENTS = ("gamma", "beta", "mean", "var")
_SIZE = (1, 16, 15, 14)  # an image of 16 channels, with tails


@dataclass(frozen=True)
class Program:
    """One program: its name, what computes it, and the shapes and dtypes of its arguments."""

    name: str
    compute: Callable[..., Any]
    case: Case


def _normalized(y: Any, w: dict[str, Any], name: str) -> Any:
    return op.batch_norm(y, *(w[f"{each}_{name}"] for each in _MOMENTS))[0]


def resnet_block(x: Any, **w: Any) -> Any:
    """Two convolutions of 3x3 and one of 1x1 beside them, each normalised."""
    y = op.relu(_normalized(op.conv2d(x, w["w_a"], padding=1, strides=2), w, "a"))
    y = _normalized(op.conv2d(y, w["w_b"], padding=1), w, "b")
    return op.relu(op.add(y, _normalized(op.conv2d(x, w["w_c"], strides=2), w, "c")))


def mobilenet_block(x: Any, **w: Any) -> Any:
    """An inverted residual, and the means of its image."""
    y = op.clip(_normalized(op.conv2d(x, w["w_a"]), w, "a"), a_min=0.0, a_max=6.0)
    y = op.conv2d(y, w["w_b"], padding=1, groups=64)
    y = op.clip(_normalized(y, w, "b"), a_min=0.0, a_max=6.0)
    y = op.add(x, _normalized(op.conv2d(y, w["w_c"]), w, "c"))
    return op.mean(y, axis=(2, 3))


def _network(name: str, compute: Callable[..., Any], **weights: tuple[int, ...]) -> Program:
    """A block with batch norms, by the shapes of its weights."""
    moments = {f"{m}_{w[-1]}": shape[:1] for w, shape in weights.items() for m in _MOMENTS}
    shapes: dict[str, Any] = {"x": _SIZE, **weights, **moments}
    kind = inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter(each, kind) for each in shapes]  # emit reads their names

    def program(**given: Any) -> Any:
        return compute(**given)

    program.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return Program(name, program, Case(program, name=name, **shapes))


NETWORKS = (
    _network("ResNet block", resnet_block, w_a=(32, 16, 3, 3), w_b=(32, 32, 3, 3),
             w_c=(32, 16, 1, 1)),
    _network("MobileNet block", mobilenet_block, w_a=(64, 16, 1, 1), w_b=(64, 1, 3, 3),
             w_c=(16, 64, 1, 1)),
)  # fmt: skip


def _of_composites() -> list[Program]:
    found = []
    for composite in selfbyoc.BUILTIN:
        cases = [case for case in composite.cases if GENERATION in case.generations][:CASES]
        for number, case in enumerate(cases, 1):
            compute = case.program or composite.pattern
            found.append(Program(f"{composite.name} {number}", compute, case))
    return found


def programs() -> list[Program]:
    """All of them, of this generation."""
    return [*NETWORKS, *_of_composites()]
