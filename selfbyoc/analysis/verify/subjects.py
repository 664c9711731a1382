"""What there is to verify in a partitioned module: its kernels, equal ones once, with real
weights.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...codegen.attributes import PACKED, SCALARS
from ...codegen.external import NOT_OWN, TARGET, packed_params
from ...codegen.pack import pack_constants
from ...codegen.target import host_target
from ...codegen.tuning_record import TUNED, Tuned, told_by
from ...graph import OpGraph
from ...partition.generation import ir
from ...tvm import make_target
from ...tvm.types import Function, IRModule, Target
from ..kernels import Kernel, kernels
from .inputs import Array, arrays

Constants = Mapping[int, Array]


@dataclass(frozen=True, eq=False)
class Subject:
    """A kernel with the weights of one of its calls, as they were and as they are passed."""

    kernel: Kernel
    function: Function  # the external function, for TVM's own build of it
    roots: tuple[str, ...]
    constants: Constants
    packed: Constants

    @property
    def graph(self) -> OpGraph:
        """Its ops; the inputs are unpacked."""
        return self.kernel.source.graph

    @property
    def type(self) -> str:
        """`float32[1, 8, 9, 9], ... -> float32[1, 4, 9, 9]`, for people."""
        ins, outs = (
            ", ".join(v.type for v in vs) for vs in (self.graph.inputs, self.graph.outputs)
        )
        return f"{ins} -> {outs}"

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for kernels that are built from the same thing."""
        source = self.kernel.source
        attrs = {name: source.attrs.get(name) for name in (PACKED, SCALARS, NOT_OWN, TUNED)}
        return self.kernel.composite, structure(self.graph), json.dumps(attrs, sort_keys=True)

    def at(self, sizes: Mapping[str, int]) -> Subject:
        """The same kernel at other sizes of its symbols."""
        return replace(self, kernel=self.kernel.at(sizes))

    def told(self, reason: str) -> Subject:
        """The same kernel on its default schedule."""
        source = self.kernel.source
        attrs = {**source.attrs, NOT_OWN: reason}
        return replace(self, kernel=replace(self.kernel, source=replace(source, attrs=attrs)))

    def passed(self, inputs: list[Array]) -> list[Array]:
        """Inputs of the graph as the kernel takes them: some of them packed."""
        return [self.packed.get(i, array) for i, array in enumerate(inputs)]


def structure(graph: OpGraph) -> tuple[object, ...]:
    """The graph as plain data: equal for graphs that compute the same."""
    number = {v: i for i, v in enumerate(graph.inputs)}
    ops = []
    for call in graph.ops:
        ins = tuple(number.get(v, v.scalar) for v in call.inputs)
        number |= {v: len(number) + i for i, v in enumerate(call.outputs)}
        ops.append(
            (
                call.kind,
                ins,
                str(sorted(call.attrs.items(), key=str)),
                tuple(v.type for v in call.outputs),
            )
        )
    types = tuple((v.type, v.scalar, v.seven_bits) for v in graph.inputs)
    return types, tuple(ops), tuple(number[v] for v in graph.outputs)


def subjects(mod: IRModule, plain: IRModule | None, seed: int = 0) -> list[Subject]:
    """The different kernels of a partitioned module. `plain` is the same module before packing.

    Where it is not at hand, weights that were packed are replaced by seeded random ones.
    """
    functions = ir.external_functions(mod)
    first: dict[str, str] = {}  # symbol -> the first of the equal functions that have it
    for name, func in functions.items():
        first.setdefault(str(func.attrs["global_symbol"]), name)
    unpacked = ir.call_constants(plain) if plain is not None else {}
    found: dict[Any, Subject] = {}
    for kernel in kernels(mod):
        name = first[kernel.symbol]
        constants = unpacked[name][0] if name in unpacked else None
        subject = _subject(kernel, functions[name], constants, seed)
        known = found.get(subject.key, replace(subject, roots=()))
        found[subject.key] = replace(known, roots=known.roots + kernel.roots)
    return list(found.values())


def _subject(kernel: Kernel, func: Function, constants: Constants | None, seed: int) -> Subject:
    passed = kernel.calls[0] if kernel.calls else {}
    positions = set(packed_params(kernel.source))
    if constants is None:
        graph = kernel.source.graph
        kept = {i: a for i, a in passed.items() if i not in positions}
        made = arrays(graph, kept, "random", seed)
        constants = {**kept, **{i: made[i] for i in positions}}
        with _packed_for(kernel), kernel.planning(), told_by(Tuned.of(kernel.source.attrs)):
            packed = pack_constants(graph, kernel.match, {i: made[i] for i in positions})
    else:
        packed = {i: passed[i] for i in positions}
    return Subject(kernel, func, kernel.roots, constants, packed)


def _packed_for(kernel: Kernel) -> Target:
    """The target that partitioning packed weights for."""
    told = kernel.source.attrs.get(TARGET)
    return make_target(told) if told else host_target()
