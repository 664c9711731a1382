"""Attributes of TVM's own ops at other values, those included that our vocabulary does not know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

from ...printable import quiet
from ...tvm.types import Attrs, IRModule
from .generation import planter
from .meaning import graph_of, model, numbers
from .program import Plant, Program

# Relay takes any number of groups, and reads out of bounds; shapes of another number of elements.
_LEFT_OUT = frozenset({"groups", "newshape", "shape"})
_LAYOUTS = ("NCHW", "NHWC", "NCHW4c", "OIHW", "HWIO")
_DTYPES = ("float16", "float32", "float64", "int32", "int16")


def with_plant(program: Program, rng: Random) -> Program | None:
    """One attribute of one op of the model at another value; None where TVM cannot write it."""
    mod = _model(program)
    if mod is None:
        return None
    places = [
        Plant(op, index, name, other)
        for op, index, attrs in _numbered(planter.op_calls(mod))
        for name, value in attrs.items()
        if name not in _LEFT_OUT
        for other in others(name, value)
        if not _is_all_padding(attrs, name, other)
    ]
    if not places:
        return None
    for _ in range(4):
        # An attribute of many values is no likelier than a switch.
        here = rng.choice(sorted({(p.op, p.index, p.name) for p in places}))
        plant = rng.choice([p for p in places if (p.op, p.index, p.name) == here])
        told = f"{plant.op} {plant.name}={plant.value!r}"
        found = replace(program, plant=plant, grown=(*program.grown, told))
        if _differs(_model(found), mod, plant):
            return found
    return None


def _differs(mod: IRModule | None, before: IRModule, plant: Plant) -> bool:
    """Whether TVM wrote the model, and has it that the attribute is another: in Relay any integer
    but 0 is true.
    """
    if mod is None:
        return False
    now, then = (
        [attrs.get(plant.name) for op, attrs in planter.op_calls(m) if op == plant.op]
        for m in (mod, before)
    )
    return str(now) != str(then)


def _is_all_padding(attrs: Attrs, name: str, value: object) -> bool:
    """Whether a window of the pool would lie in the padding: all say something else of it."""
    if name != "padding" or "pool_size" not in attrs or not isinstance(value, list):
        return False
    return max(value) >= min(int(n) for n in attrs["pool_size"])


def _model(program: Program) -> IRModule | None:
    try:
        with quiet():  # the type rules print, too
            return model(program, numbers(program, graph_of(program), "random"))
    except Exception:  # TVM's type rules raise whatever they like; the worker tells of it
        return None


def _numbered(
    calls: Sequence[tuple[str, Attrs]],
) -> list[tuple[str, int, Attrs]]:
    seen: dict[str, int] = {}
    found = []
    for op, attrs in calls:
        seen[op] = seen.get(op, -1) + 1
        found.append((op, seen[op], attrs))
    return found


def others(name: str, value: Any) -> list[Any]:
    """Other values of an attribute, of its type."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [int(value) - 1, int(value) + 1]
    if isinstance(value, float):
        return [float(value) * 3 + 0.125, -float(value), 0.0]
    if "layout" in name:
        return [text for text in _LAYOUTS if text != str(value)]
    if "dtype" in name:
        return [text for text in _DTYPES if text != str(value)]
    sizes = list(value) if type(value).__name__ in ("tuple", "Array") else []
    if not sizes or not all(type(v).__name__ in ("int", "IntImm") for v in sizes):
        return []
    numbers = [int(v) for v in sizes]
    found = [[n + 1 for n in numbers], [numbers[0] + 1, *numbers[1:]], numbers[::-1]]
    return [each for each in found if each != numbers]
