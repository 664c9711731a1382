"""A drawn program as what a plan is asked for, without any IR."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from random import Random
from typing import Any

from selfbyoc import BUILTIN
from selfbyoc.codegen.arguments import run_pack
from selfbyoc.codegen.attributes import with_seven_bits
from selfbyoc.codegen.info.ops import Ops
from selfbyoc.codegen.plan import ops_of
from selfbyoc.codegen.unread_attributes import is_right
from selfbyoc.commands.fuzz.infer import Invalid
from selfbyoc.commands.fuzz.meaning import graph_of, has_seven_bits
from selfbyoc.commands.fuzz.program import Program
from selfbyoc.commands.fuzz.seeds import case_program
from selfbyoc.graph import OpGraph
from selfbyoc.ir.canonical import canonicalize
from selfbyoc.language.composite import Composite
from selfbyoc.language.match.match import Match, find_whole
from selfbyoc.ops.half_weights import WIDENS
from selfbyoc.partition.extents import beyond
from selfbyoc.tvm import te

from .programs import drawn

Shapes = Mapping[str, tuple[int, ...] | None]
TRIES = 12


@cache
def families() -> dict[str, tuple[Composite, ...]]:
    """The built-in composites that have a kernel, by the function that plans them."""
    found: dict[str, list[Composite]] = {}
    for composite in BUILTIN:
        if composite.kernel is not None:
            found.setdefault(_name(composite.kernel.plan), []).append(composite)
    return {name: tuple(members) for name, members in found.items()}


def _name(plan: Any) -> str:
    """Where it stands: `conv`, `conv.chain`, `dense`, `layer_norm.rows`."""
    parts = [*plan.__module__.split(".")[3:], plan.__name__.removesuffix("_plan")]
    return ".".join(part for part in parts if not part.startswith(("plan", "_plan")) and part)


@cache
def templates(family: str) -> tuple[tuple[Composite, Program], ...]:
    """The programs of its composites' cases, of any generation."""
    return tuple((c, case_program(c, case)) for c in families()[family] for case in c.cases)


@dataclass(frozen=True)
class Draw:
    """A program that a composite takes, and its match."""

    composite: Composite
    program: Program
    match: Match

    @property
    def packable(self) -> list[str]:
        """The arguments that are packed where they are constants."""
        return [name for name in self.match.args if self.composite.pack_for(name) is not None]

    def ops(self, packed: Shapes) -> Ops:
        """What the plan sees; `packed` are the arguments that are constants, in their shape where
        they are packed by now.
        """
        return ops_of(self.match, packed)

    def packed(self, names: Iterable[str], plan: Any) -> dict[str, tuple[int, ...]]:
        """The shapes that arguments have, packed by a plan."""
        return {
            name: tuple(int(extent) for extent in self._packed(name, plan).shape) for name in names
        }

    def weights_of_one(self, name: str, plan: Any) -> int:
        """How many weights an element of a packed argument holds: a word has some of few bits."""
        bits = {int(op.attrs["bits"]) for op in self.match.ops if "bits" in op.attrs}
        value, found = self.match.args[name], str(self._packed(name, plan).dtype)
        each = _bits(value.held if found == "int32" and value.held else value.dtype)
        if each == 8 and bits:  # of weights; scales and zero points are no bytes
            (each,) = bits
        return max(1, _bits(found) // each)

    def _packed(self, name: str, plan: Any) -> Any:
        value = self.match.args[name]
        tensor = te.placeholder(value.shape, value.dtype, name=name)
        pack = self.composite.pack_for(name)
        assert pack is not None
        return run_pack(pack, tensor, self.match, name, plan, ahead=True)


def _bits(dtype: str) -> int:
    return int("".join(c for c in dtype if c.isdigit()))


def draw(family: str, rng: Random) -> Draw | None:
    """A program of a family; None where nothing that is drawn is one."""
    composite, template = rng.choice(templates(family))
    for _ in range(TRIES):
        try:
            program = replace(drawn(template, rng), seed=rng.randrange(2))
        except Invalid:
            continue
        if (found := taken(composite, program)) is not None:
            return found
    return None


def taken(composite: Composite, program: Program) -> Draw | None:
    """The program if the composite takes it: its pattern, its check, all attributes, and as many
    elements as kernels can index.
    """
    graph = _as_read(graph_of(program))
    inputs = enumerate(graph.inputs)  # plans ask it of weights alone
    small = [i for i, v in inputs if has_seven_bits(program, v.shape, v.dtype)]
    graph = _with_held(with_seven_bits(graph, small))
    if not graph.ops or beyond(graph.ops, [(v.name, v) for v in graph.inputs])[0]:
        return None
    match = find_whole(composite, graph)
    if not isinstance(match, Match) or not is_right(match):
        return None
    return Draw(composite, program, match)


def _as_read(graph: OpGraph) -> OpGraph:
    """The graph as if its ops were read from IR: those without a source do not count, and results
    have a layout.
    """
    ops = tuple(replace(c, sources=(c,), attrs=_with_layout(c.attrs)) for c in graph.ops)
    return OpGraph(graph.inputs, ops, graph.outputs)


def _with_held(graph: OpGraph) -> OpGraph:
    """The graph as it is canonicalised where convolutions read halves, or products are of them: no
    pattern names the op that says so.
    """
    kinds = {call.kind for call in graph.ops}
    of_convolutions = "conv2d" in kinds and not kinds.isdisjoint(WIDENS)
    return canonicalize(graph) if of_convolutions or "half_factor" in kinds else graph


def _with_layout(attrs: Mapping[str, Any]) -> Mapping[str, Any]:
    if "kernel_layout" not in attrs:
        return attrs
    return {**attrs, "out_layout": attrs.get("out_layout") or attrs["data_layout"]}
