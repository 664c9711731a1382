"""The kernels that a graph executor calls, in order: TVM's debug executor makes one at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ...errors import InputError
from ...tvm import tvm
from ...tvm.types import Executable, NDArray
from ..executors.relay.vm import is_machine
from ..kernel_call import KernelCall
from . import graph_json

VIEW = "__nop"  # the function of a node that looks at memory in another shape


def kernel_calls(
    native: Executable, names: Sequence[str], tensors: Sequence[NDArray]
) -> list[KernelCall]:
    """Of a model of known sizes. Raises InputError for another: a virtual machine of Relay tells
    nobody what it calls.
    """
    if is_machine(native):
        raise InputError("its sizes are open: Relay's virtual machine does not tell its kernels")
    module = native["debug_create"]("default", tvm.cpu())
    for name, value in zip(names, tensors, strict=True):
        module["set_input"](name, value)
    execute, output = module["execute_node"], module["get_node_output"]
    nothing = tvm.get_global_func("testing.nop")
    entries: list[list[NDArray]] = []
    weights: set[int] = set()
    found: list[KernelCall] = []
    for number, node in enumerate(graph_json.read(native.graph_json)["nodes"]):
        execute(number)  # it hands out what the last one wrote
        attrs = node.get("attrs", {})  # none of an input's or a weight's
        results = [output(number, n) for n in range(int(attrs.get("num_outputs", 1)))]
        entries.append(results)
        if node["op"] == "null" and node["name"] not in names:
            weights.add(number)
        if attrs.get("func_name", VIEW) == VIEW:
            continue
        given = [(of, entries[of][n]) for of, n, *_ in node["inputs"]]
        run = partial(execute, number) if found else partial(_from_the_start, execute, number)
        found.append(
            KernelCall(
                attrs["func_name"], run, partial(nothing, number),
                (*(tensor for _, tensor in given), *results), tuple(results),
                tuple(tensor for of, tensor in given if of in weights),
            )
        )  # fmt: skip
    return found


def _from_the_start(execute: Callable[[int], object], number: int) -> None:
    """It executes nothing where it is asked for the node that it executed last."""
    execute(0)
    execute(number)
