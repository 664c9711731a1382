"""Is what a line of a record file says a record: every field of its type, traces as TVM wants them.

TVM's C++ takes much of a trace on trust: a decision about no instruction writes outside its memory.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from ...tvm.types import Trace

_DEPTH = 32  # levels of lists and objects; a trace has 5
_TEXTS = ("workload", "composite", "about", "status", "code", "error")
_NEEDED = ("workload", "composite", "about", "place", "status")
_TIMES = ("seconds", "default_seconds")
_OPEN = (None, "None")  # an open factor of a split: TVM 0.17 spells it as a text
# What a schedule may not do on a record's word: put other code into the kernel, or drop checks.
_FOREIGN, _UNSAFE = "pragma_import", "Unsafe"


def parsed(line: str, names: Sequence[str]) -> dict[str, Any]:
    """The fields of a record. Raises ValueError for anything that cannot be one."""
    try:
        data = json.loads(line)
    except RecursionError as err:
        raise ValueError("no tuning record: it is nested too deeply") from err
    _require(isinstance(data, dict) and set(data) <= {*names}, "no tuning record")
    _require(_is_flat(data), "no tuning record: it is nested too deeply")
    for name in _NEEDED:
        _require(name in data, f"no tuning record: {name} is missing")
    _check_fields(data)
    if data.get("trace") is not None:
        _check_trace(data["trace"])
    return data


def _require(is_right: bool, text: str) -> None:
    if not is_right:
        raise ValueError(text)


def _is_flat(data: Any) -> bool:
    """Level by level: C++ would descend into it on the stack."""
    level = [data]
    for _ in range(_DEPTH):
        inner = (x.values() if isinstance(x, dict) else x for x in level)
        level = [x for x in chain.from_iterable(inner) if isinstance(x, (dict, list))]
        if not level:
            return True
    return False


def _check_fields(data: Mapping[str, Any]) -> None:
    for name in _TEXTS:
        _require(isinstance(data.get(name, ""), str), f"{name} is no text")
    for name in _TIMES:
        _require(_is_time(data.get(name)), f"{name} is {data.get(name)!r:.60}; expected seconds")
    _require(isinstance(data.get("decisions", {}), dict), "decisions are no object")
    made_by = data.get("made_by", {})
    is_text = isinstance(made_by, dict) and all(isinstance(v, str) for v in made_by.values())
    _require(is_text, "made_by is no object of texts")
    place = data["place"]
    _require(isinstance(place, dict), "place is no object")
    _require({*place} == {"generation", "target", "cores"}, f"place has {sorted(place)!r:.60}")
    _require(isinstance(place["generation"], str), "place: generation is no text")
    _require(isinstance(place["target"], dict), "place: target is no object")
    _require(type(place["cores"]) is int, "place: cores is no number")


def _is_time(value: Any) -> bool:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value is None or (is_number and 0 <= value < math.inf)


def _check_trace(trace: Trace) -> None:
    """[instructions, decisions]: [name, inputs, attributes, outputs], and [position, decision]."""
    lists = isinstance(trace, list) and len(trace) == 2
    _require(lists and all(isinstance(part, list) for part in trace), "trace: not two lists")
    instructions, decisions = trace
    for number, found in enumerate(instructions):
        _require(_is_instruction(found), f"trace: instruction {number} is {found!r:.60}")
    for found in decisions:
        pair = isinstance(found, list) and len(found) == 2 and type(found[0]) is int
        _require(
            pair and 0 <= found[0] < len(instructions) and found[1] is not None,
            f"trace: {found!r:.60} decides about none of {len(instructions)} instructions",
        )


def _is_instruction(found: object) -> bool:
    if not isinstance(found, list) or len(found) != 4 or not isinstance(found[0], str):
        return False
    name, *parts = found
    if not all(isinstance(part, list) for part in parts) or name.startswith(_UNSAFE):
        return False
    inputs, attrs, outputs = parts
    if any(isinstance(a, str) and a.startswith(_FOREIGN) for a in attrs):
        return False
    is_named = all(isinstance(out, str) for out in outputs)
    return is_named and (_is_split(inputs) if name == "Split" else None not in inputs)


def _is_split(inputs: Sequence[object]) -> bool:
    """A loop and its factors: numbers, or values that were sampled, at most one of them open."""
    loop, *factors = inputs or [None]
    values = [f for f in factors if f not in _OPEN]
    is_known = all(type(f) is int or (isinstance(f, str) and f.startswith("v")) for f in values)
    return isinstance(loop, str) and is_known and len(factors) - len(values) <= 1
