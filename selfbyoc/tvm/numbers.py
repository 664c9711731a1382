"""The numbers of a PrimFunc: the integers in its code and in its buffers' shapes, and its floats. A
float that is a whole number, or one over it, as a mean divides by, counts as that integer.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import GENERATION, dtype_of, structural_equal, structural_hash, tir, tvm
from .types import PrimExpr, PrimFunc

if GENERATION == "relax":
    import tvm_ffi

Change = Callable[[Any], Any]
MOST_WHOLE = 1 << 24  # of floats: all whole numbers up to there are float32


def map_numbers(func: PrimFunc, change: Change) -> PrimFunc:
    """A PrimFunc with each number as `change` makes it, in the order of a walk that is the same for
    functions of the same code.
    """
    if GENERATION == "relax":
        return tvm_ffi.structural_map(func, ((tir.IntImm, change), (tir.FloatImm, change)))
    return _Copy(func, change).func()


def without_numbers(func: PrimFunc) -> tuple[list[int], Any]:
    """The integers of a PrimFunc in the order of that walk, of other floats 0; and what is left of
    it, equal for those that differ in integers only.
    """
    if GENERATION == "relay":
        copy = _Copy(func)
        return copy.integers, tuple(copy.texts)
    found: list[int] = []

    def note(node: PrimExpr) -> PrimExpr:
        count, is_inverse = as_integer(node)
        found.append(count)
        if isinstance(node, tir.IntImm):
            return tir.IntImm(dtype_of(node), 0)
        return tir.const(0.5 if is_inverse else 2.0, dtype_of(node)) if count else node

    return found, _Loops(map_numbers(func, note))


def as_integer(node: PrimExpr) -> tuple[int, bool]:
    """The integer that a number is or, of a float, is one over (true); 0 of other floats."""
    return (int(node.value), False) if isinstance(node, tir.IntImm) else _whole(float(node.value))


def _whole(value: float) -> tuple[int, bool]:
    if 1 < value <= MOST_WHOLE and value == int(value):
        return int(value), False
    if not 1 / MOST_WHOLE <= value < 1:
        return 0, False
    count = round(1 / value)
    return (count, True) if np.float32(1 / count) == np.float32(value) else (0, False)


def stand_in(node: PrimExpr, count: PrimExpr) -> PrimExpr:
    """An integer, or an expression of one, in the place of a number, as that stands for it."""
    if isinstance(node, tir.IntImm):
        if isinstance(count, int):
            return tir.IntImm(dtype_of(node), count)
        return count if dtype_of(count) == dtype_of(node) else tir.Cast(dtype_of(node), count)
    known, is_inverse = as_integer(node)
    if isinstance(count, int) and known == count:
        return node
    if isinstance(count, int):
        return tir.const(_inverse(count) if is_inverse else count, dtype_of(node))
    value = tir.Cast(dtype_of(node), count)
    return tir.const(1.0, dtype_of(node)) / value if is_inverse else value


def _inverse(count: int) -> float:
    return 1 / count if count else float("inf")  # of a mean of nothing


@dataclass(frozen=True)
class _Loops:
    """A PrimFunc that is equal to another of the same structure."""

    func: PrimFunc

    def __hash__(self) -> int:
        return int(structural_hash(self.func))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Loops) and bool(structural_equal(self.func, other.func))


# Fields of TVM 0.17's JSON that are no place of another node.
_PLAIN = {"buffer_type", "data_alignment", "dtype", "iter_type", "kind", "offset_factor"}
_NUMBERS = {"IntImm", "FloatImm"}
_BY_IDENTITY = {"tir.Var", "tir.SizeVar", "tir.Buffer", "tir.IterVar", "Op"}


class _Copy:
    """A copy of a PrimFunc by way of TVM 0.17's JSON: it has no mutator that knows of all nodes, of
    the shapes of buffers least of all.

    What is no integer any more is a parameter first, for which `specialize` writes the expression.
    """

    def __init__(self, func: PrimFunc, change: Change | None = None) -> None:
        self.change = change
        self.data = json.loads(tvm.ir.save_json(func))
        self.nodes: list[Any] = [{"type_key": ""}]
        self.places: dict[int, int] = {0: 0}  # of nodes that are copied once
        self.expressions: dict[str, Any] = {}
        self.variables: list[int] = []
        self.integers: list[int] = []
        self.texts: list[str | int] = []  # what it walks through, without the integers
        self.root = self._walked()

    def _walked(self) -> int:
        old = self.data["nodes"][self.data["root"]]["attrs"]
        old["_checked_type_"] = "0"  # of the old shapes
        params = self._copied(int(old["params"]))
        self.places[int(old["params"])] = params
        return self._copied(self.data["root"])

    def func(self) -> PrimFunc:
        """The PrimFunc as changed."""
        params = self.nodes[int(self.nodes[self.root]["attrs"]["params"])]
        params["data"] = [*params.get("data", ()), *self.variables]
        made = tvm.ir.load_json(json.dumps({**self.data, "root": self.root, "nodes": self.nodes}))
        count = len(self.variables)
        if not count:
            return made
        values = self.expressions.values()
        return made.specialize(dict(zip(made.params[-count:], values, strict=True)))

    def _copied(self, place: int) -> int:
        """The place of a node in the copy: each use has its own, but for what is its identity."""
        if place in self.places:
            self.texts.append(self.places[place])
            return self.places[place]
        node = self.data["nodes"][place]
        self.texts.append(node.get("repr_str", node["type_key"]))
        if node["type_key"] in _NUMBERS:
            return self._number(node)
        made = self._added(dict(node))
        if node["type_key"] in _BY_IDENTITY:
            self.places[place] = made
        if "data" in node:
            self.nodes[made]["data"] = [self._copied(child) for child in self._children(node)]
        if "attrs" in node:
            fields = node["attrs"].items()
            self.nodes[made]["attrs"] = {n: self._field(node, n, value) for n, value in fields}
        return made

    def _field(self, node: PrimExpr, name: str, value: str) -> str:
        if name in _PLAIN:
            self.texts.append(value)
            return value
        return str(self._copied(int(value)))

    def _children(self, node: PrimExpr) -> list[int]:
        """The parts of an array or a map; of a map with the parameters for its keys, which TVM
        lists by address, in the order of these.
        """
        parts = node["data"]
        if node["type_key"] != "Map" or "keys" in node:
            return list(parts)
        pairs = sorted(zip(parts[::2], parts[1::2], strict=True), key=lambda p: self.places[p[0]])
        return [part for pair in pairs for part in pair]

    def _number(self, node: PrimExpr) -> int:
        fields, is_integer = node["attrs"], node["type_key"] == "IntImm"
        value = int(fields["value"]) if is_integer else float(fields["value"])
        count, is_inverse = (value, False) if is_integer else _whole(value)
        self.integers.append(int(count))
        self.texts.append(is_inverse if is_integer or count else fields["value"])
        if self.change is None:
            return self._added(node)
        made = tir.IntImm if is_integer else tir.FloatImm
        new = self.change(made(fields["dtype"], value))
        if isinstance(new, (tir.IntImm, tir.FloatImm)):
            text = str(int(new.value)) if is_integer else repr(float(new.value))
            same = new.value == value
            return self._added(node if same else {**node, "attrs": {**fields, "value": text}})
        key = f"{new} {fields['dtype']}"
        if key not in self.expressions:
            self.expressions[key] = new.astype(fields["dtype"])
            self.variables.append(self._variable(f"formula_{len(self.variables)}", fields["dtype"]))
        return self.variables[list(self.expressions).index(key)]

    def _variable(self, name: str, dtype: str) -> int:
        text = self._added({"type_key": "runtime.String", "repr_str": name})
        kind = self._added({"type_key": "PrimType", "attrs": {"dtype": dtype}})
        fields = {"dtype": dtype, "name": str(text), "span": "0", "type_annotation": str(kind)}
        return self._added({"type_key": "tir.Var", "attrs": fields})

    def _added(self, node: PrimExpr) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1
