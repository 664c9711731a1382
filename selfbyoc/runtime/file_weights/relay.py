"""Relay: the graph executor's program with stubs where kernels are given parameters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm.relay.backend.executor_factory import GraphExecutorFactoryModule

from ...tvm import tvm
from ...tvm.types import Executable, Module, NDArray
from ..alignment import is_plain
from ..executors.relay.vm import is_machine
from ..relay import graph_json
from .abi import Abi
from .table import GIVEN, Table, Weight

# TVM 0.17's c_runtime_api.h: values and their types apart; 7 is a DLTensor*.
ABI = Abi(
    declared="typedef union { void* p; int64_t i; double f; } Value;\n",
    stub="""int32_t {kernel}(Value*, int32_t*, int32_t, Value*, int32_t*, void*);
int32_t {stub}(Value* given, int32_t* types, int32_t count, Value* result, int32_t* type,
               void* handle) {{
  Value all[] = {{{given}}};
  int32_t all_types[] = {{{types}}};
  (void)count;
  return {kernel}(all, all_types, {count}, result, type, handle);
}}""",
    pack="""{{
    int32_t {function}(Value*, int32_t*, int32_t, Value*, int32_t*, void*);
    Value all[] = {{{given}}}, result;
    int32_t all_types[] = {{{types}}}, type;
    {function}(all, all_types, {count}, &result, &type, 0);
  }}""",
    weight="{{&weights[{n}]}}",
    given="given[{n}]",
    given_type="types[{n}]",
)

Entry = list[int]  # a node's output: the node, which of its outputs, a version


def apart(native: Executable, lowered: object) -> tuple[Executable, Table]:
    """The factory as a file has it, and what stands beside. The virtual machine's executable stays
    as it is: its code cannot be read.
    """
    table = Table()
    if is_machine(native) or not _is_code(native.lib):
        return native, table
    graph = _Graph(graph_json.read(native.graph_json), native.params).stubbed(table)
    inputs = {graph["nodes"][n]["name"] for n in graph["arg_nodes"]}
    params = {name: value for name, value in native.params.items() if name in inputs}
    made = GraphExecutorFactoryModule(
        native.ir_mod, native.target, native.executor, graph_json.write(graph), native.lib,
        native.libmod_name, params, native.function_metadata,
    )  # fmt: skip
    return made, table


@dataclass
class _Graph:
    """The executor's JSON: nodes, their outputs row by row, and lists of what each output is."""

    data: dict[str, Any]
    params: dict[str, NDArray]

    def stubbed(self, table: Table) -> dict[str, Any]:
        """The graph without the parameters that nothing but kernels reads, which stubs pass on."""
        nodes = self.data["nodes"]
        weights = {
            n: weight
            for n in self.data["arg_nodes"]
            if (weight := _weight(self.params.get(nodes[n]["name"]))) is not None
        }
        for node in nodes:
            if not self._is_kernel(node):
                self._keep(weights, node["inputs"])
        self._keep(weights, self.data["heads"])
        for node in nodes:
            inputs = node["inputs"]
            if any(entry[0] in weights for entry in inputs):
                _stub(node, [weights.get(entry[0]) for entry in inputs], table)
        return self._without(set(weights))

    @staticmethod
    def _is_kernel(node: dict[str, Any]) -> bool:
        """Whether a node is code in the file, given its tensors as they are."""
        attrs = node.get("attrs", {})
        name = str(attrs.get("func_name", ""))
        is_given_whole = node["op"] == "tvm_op" and str(attrs.get("flatten_data")) == "0"
        return is_given_whole and not name.startswith("__") and bool(re.fullmatch(r"\w+", name))

    @staticmethod
    def _keep(weights: dict[int, Weight], read: Sequence[Entry]) -> None:
        for entry in read:
            weights.pop(entry[0], None)

    def _without(self, gone: set[int]) -> dict[str, Any]:
        """The graph without some of its inputs; nodes, outputs and memory numbered anew."""
        nodes, rows = self.data["nodes"], self.data["node_row_ptr"]
        kept = [n for n in range(len(nodes)) if n not in gone]
        number = {n: place for place, n in enumerate(kept)}
        outputs = [row for n in kept for row in range(rows[n], rows[n + 1])]
        for node in nodes:
            entries = (entry for entry in node["inputs"] if entry[0] in number)
            node["inputs"] = [[number[e[0]], *e[1:]] for e in entries]
        counts = [0, *(rows[n + 1] - rows[n] for n in kept)]
        attrs = {
            name: [kind, [values[row] for row in outputs]]
            for name, (kind, values) in self.data["attrs"].items()
        }
        attrs["storage_id"][1] = _numbered(attrs["storage_id"][1])
        return {
            **self.data,
            "nodes": [nodes[n] for n in kept],
            "arg_nodes": [number[n] for n in self.data["arg_nodes"] if n in number],
            "heads": [[number[e[0]], *e[1:]] for e in self.data["heads"]],
            "attrs": attrs,
            "node_row_ptr": [sum(counts[: n + 1]) for n in range(len(counts))],
        }


def _numbered(values: Sequence[int]) -> list[int]:
    """The same ones equal, from 0 on without a gap."""
    known: dict[int, int] = {}
    return [known.setdefault(value, len(known)) for value in values]


def _stub(node: dict[str, Any], weights: Sequence[Weight | None], table: Table) -> None:
    """Have a node call the stub of its kernel."""
    attrs = node["attrs"]
    outputs = [GIVEN] * int(attrs["num_outputs"])
    places = [GIVEN if weight is None else table.place(weight) for weight in weights]
    attrs["func_name"] = table.stub(attrs["func_name"], [*places, *outputs]).name
    attrs["num_inputs"] = str(places.count(GIVEN))


def _is_code(module: Module) -> bool:
    """Whether it is this CPU's, and launches nobody else's."""
    return module.type_key == "llvm" and all(map(_is_code, module.imported_modules))


def _weight(param: NDArray | None) -> Weight | None:
    """A parameter's values, where a file can have them."""
    if param is None:
        return None
    dtype, values = tvm.DataType(param.dtype), param.numpy()
    if not values.size or not is_plain(values.dtype):
        return None
    return Weight(values.shape, (dtype.type_code, dtype.bits, dtype.lanes), values)
