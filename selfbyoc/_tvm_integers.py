"""The integers of a PrimFunc, in its code and in its buffers' shapes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ._tvm import GENERATION, tir, tvm

if GENERATION == "relax":
    import tvm_ffi

Change = Callable[[Any], Any]


def map_integers(func: Any, change: Change) -> Any:
    """A PrimFunc with each integer in its code and in its buffers' shapes as `change` makes it, in
    the order of a walk that is the same for functions of the same code.
    """
    if GENERATION == "relax":
        return tvm_ffi.structural_map(func, ((tir.IntImm, change),))
    return _Copy(func, change).func()


# Fields of TVM 0.17's JSON that are no place of another node.
_PLAIN = {"buffer_type", "data_alignment", "dtype", "iter_type", "kind", "offset_factor"}
_VALUES = {"IntImm", "FloatImm"}  # so is their `value`
_BY_IDENTITY = {"tir.Var", "tir.SizeVar", "tir.Buffer", "tir.IterVar", "Op"}


class _Copy:
    """A copy of a PrimFunc by way of TVM 0.17's JSON: it has no mutator that knows of all nodes, of
    the shapes of buffers least of all.

    What is no integer any more is a parameter first, for which `specialize` writes the expression.
    """

    def __init__(self, func: Any, change: Change) -> None:
        self.change = change
        self.data = json.loads(tvm.ir.save_json(func))
        self.nodes: list[Any] = [{"type_key": ""}]
        self.places: dict[int, int] = {0: 0}  # of nodes that are copied once
        self.expressions: dict[str, Any] = {}
        self.variables: list[int] = []

    def func(self) -> Any:
        """The PrimFunc as changed."""
        old = self.data["nodes"][self.data["root"]]["attrs"]
        old["_checked_type_"] = "0"  # of the old shapes
        params = self._copied(int(old["params"]))
        self.places[int(old["params"])] = params
        root = self._copied(self.data["root"])
        params = self.nodes[params]
        params["data"] = [*params.get("data", ()), *self.variables]
        made = tvm.ir.load_json(json.dumps({**self.data, "root": root, "nodes": self.nodes}))
        count = len(self.variables)
        if not count:
            return made
        values = self.expressions.values()
        return made.specialize(dict(zip(made.params[-count:], values, strict=True)))

    def _copied(self, place: int) -> int:
        """The place of a node in the copy: each use has its own, but for what is its identity."""
        if place in self.places:
            return self.places[place]
        node = self.data["nodes"][place]
        if node["type_key"] == "IntImm":
            return self._integer(node)
        made = self._added(dict(node))
        if node["type_key"] in _BY_IDENTITY:
            self.places[place] = made
        if "data" in node:
            self.nodes[made]["data"] = [self._copied(child) for child in self._children(node)]
        if "attrs" in node:
            fields = node["attrs"].items()
            self.nodes[made]["attrs"] = {
                name: value if self._is_plain(node, name) else str(self._copied(int(value)))
                for name, value in fields
            }
        return made

    def _children(self, node: Any) -> list[int]:
        """The parts of an array or a map; those of a map with the parameters for its keys, which TVM
        lists by address, in their order.
        """
        parts = node["data"]
        if node["type_key"] != "Map" or "keys" in node:
            return list(parts)
        pairs = sorted(zip(parts[::2], parts[1::2], strict=True), key=lambda p: self.places[p[0]])
        return [part for pair in pairs for part in pair]

    def _is_plain(self, node: Any, name: str) -> bool:
        return name in _PLAIN or (name == "value" and node["type_key"] in _VALUES)

    def _integer(self, node: Any) -> int:
        fields = node["attrs"]
        new = self.change(tir.IntImm(fields["dtype"], int(fields["value"])))
        if isinstance(new, tir.IntImm):
            return self._added({**node, "attrs": {**fields, "value": str(int(new.value))}})
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

    def _added(self, node: Any) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1
