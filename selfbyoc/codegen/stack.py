"""OpGraph -> one multi-stage PrimFunc: the ops' computes one after the other, with what they were
attached.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..errors import ComputeError, SelfbyocError
from ..graph import OpCall, OpGraph, Value
from ..language.raised import in_words
from ..ops.vocabulary import compute_of
from ..tir.recurrences import states_beside
from ..tir.te_blocks import block_names, te_order, with_own_buffers
from ..tvm import te
from ..tvm.types import PrimFunc, Tensor
from .arguments import argument_chain, run_pack
from .elementwise import Widened
from .info.lineage import labelled
from .info.op_info import OpInfo, attach, record
from .info.op_record import Recorded
from .plan import ops_of, plan_of
from .prologue_epilogue import Joined
from .roles import located, outputs_of
from .stacked_info import infos, refs, results_of
from .tensors import Tensors, constant
from .type_inference import check_shapes, check_types

if TYPE_CHECKING:
    from ..language.composite import Composite
    from ..language.match.match import Match
    from ..machine import Machine


@dataclass(frozen=True)
class Stacked:
    """A stacked, unscheduled function, with its op info where it was asked for."""

    func: PrimFunc
    ops: tuple[OpInfo, ...]  # in order
    composite: Composite
    plan: Any = None  # of the composite's kernel, if it has one
    stages: Any = None  # what the kernel's compute returned, as names of blocks by role
    recorded: Recorded | None = None


@dataclass(frozen=True)
class Packed:
    """A parameter that the caller passes packed: the argument it is, and the type it has then."""

    arg: str
    value: Value


def stack(
    graph: OpGraph,
    match: Match,
    packed: Mapping[int, Packed] | None = None,
    cpu: Machine | None = None,
    *,
    is_noted: bool = True,
) -> Stacked:
    """Graph of exactly one composite -> PrimFunc of its inputs and then its outputs.

    `packed` says, by position, which parameters the caller passes packed; `cpu` whose plan it is
    computed by, None: that of the machine at hand. `is_noted`: whether it gets op info.
    """
    composite = match.composite
    check_shapes(composite.name, graph)
    builder = Builder(graph, match, packed or {}, cpu)
    outputs = [_computed(builder.tensor(value), value.name) for value in graph.outputs]
    beside = [v for v in builder.match.outputs if v not in graph.outputs]
    unread = states_beside(outputs, [builder.tensors[v] for v in beside])
    tensors = [*builder.params, *unread, *outputs]
    names = block_names(tensors)
    ops = infos(builder, builder.joined.within, names)
    func = with_own_buffers(te.create_prim_func(tensors), len(builder.params), len(unread))
    stages = located(builder.found, lambda stage: builder.joined.block_of(stage, names))
    made = Stacked(func, ops, composite, builder.plan, stages)
    if not is_noted:
        return made
    func = labelled(func, {block: info.name for info in ops for block in info.blocks})
    recorded = record(func, ops, refs(builder, list(names)), results_of(builder))
    return replace(made, func=attach(func, recorded), recorded=recorded)


class Builder(Tensors):
    """Builds each value's tensor once."""

    def __init__(
        self,
        graph: OpGraph,
        match: Match,
        packed: Mapping[int, Packed],
        cpu: Machine | None = None,
    ) -> None:
        super().__init__(graph, match)
        self.joined = Joined(match)
        self.name_of = {value: name for name, value in match.args.items()}
        self.packed = packed
        shapes = {p.arg: p.value.shape for p in packed.values()}
        self.plan = plan_of(self.match, shapes, cpu)
        self.found: Any = {}  # what the kernel's compute returned: all of it, or by op
        for position, value in enumerate(graph.inputs):
            self._input(position, value)
        self.seen.update(p.op for p in self.params)
        for call in self._order():
            if not self.joined.stacked(self, call):
                self._op(call)
        for value in graph.outputs:
            assert value in self.tensors, f"output {value!r} is not computed"

    def _input(self, position: int, value: Value) -> None:
        packed_as = self.packed.get(position)
        # A packed one may have been read through other ops before, or stand in for them now.
        name = packed_as.arg if packed_as else self.name_of.get(value, value.name)
        passed = packed_as.value if packed_as else value
        tensor = te.placeholder(passed.shape, passed.dtype, name=_identifier(name, position))
        self.params.append(tensor)
        if packed_as:
            self.tensors[self.match.args[packed_as.arg]] = tensor
        elif value.scalar is not None:
            self.tensors[value] = constant(value)
        else:
            self.tensors[value] = tensor

    def _order(self) -> list[OpCall]:
        """Topological, reshaping of arguments first: a whole compute wants all of them at once."""
        early: dict[OpCall, None] = {}
        ready = set(self.graph.inputs)
        for call in self.graph.ops:
            if not call.sources and all(v in ready or v.is_constant for v in call.inputs):
                early[call] = None
                ready.update(call.outputs)
        skip = {
            c
            for p in self.packed.values()
            for c in argument_chain(self.graph, self.match.args[p.arg])
        }
        ops = [*early, *(c for c in self.graph.ops if c not in early)]
        return [call for call in ops if call not in skip]

    def _op(self, call: OpCall) -> None:
        own = self.composite.compute
        if callable(own) and call.sources:
            self._whole(own, call)
            return
        override = own.get(call.kind) if isinstance(own, Mapping) else None
        ins = [
            self._operand(value, self.match.role(call, i), packing=override is not None)
            for i, value in enumerate(call.inputs)
        ]
        if override is None:
            found = compute_of(call.kind)(ins, call)
        else:
            planned = () if self.composite.kernel is None else (self.plan,)
            found = self._users(f"compute of {call.name}", override, ins, call, *planned)
            self.found[call.name] = found
        tensors = outputs_of(found)
        check_types(f"composite {self.composite.name}, {call.name}", tensors, call.outputs)
        self._record(call, tensors)

    def _operand(self, value: Value, name: str, packing: bool) -> Tensor:
        """A value as the compute sees it as this argument: packed, if the composite packs that."""
        tensor = self.tensor(value)
        pack = self.composite.pack_for(name)
        if pack is not None and not packing:
            raise ComputeError(
                f"composite {self.composite.name}: argument {name!r} is packed, but no compute of "
                f"the composite takes it; `pack` needs a `compute` that reads the packed layout"
            )
        if pack is None or any(name == p.arg for p in self.packed.values()):
            return Widened(tensor) if value.held and tensor.dtype == value.held else tensor
        what = f"pack of {name!r}"
        return self._users(what, run_pack, pack, tensor, self.match, name, self.plan, ahead=False)

    def _users(self, what: str, function: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """Call a function of the composite; what it raises is reported as the composite's error."""
        try:
            return function(*args, **named)
        except SelfbyocError:
            raise
        except Exception as err:  # a user's function raises what it likes
            name = self.composite.name
            raise ComputeError(
                f"composite {name}: its {what} raised {type(err).__name__}: {in_words(err)}"
            ) from err

    def _record(self, call: OpCall, tensors: Sequence[Tensor]) -> None:
        self.joined.settle(self)
        for value, tensor in zip(call.outputs, tensors, strict=True):
            self.tensors[value] = tensor
        self.own_stages(call, tensors)

    def _whole(self, compute: Callable[..., Any], call: OpCall) -> None:
        """The composite's own compute stands for all of its ops; it is called at the first of
        them.
        """
        results = self.match.outputs
        if not any(v in self.tensors for v in results):
            ready = {n: self._operand(v, n, packing=True) for n, v in self.match.args.items()}
            asked = inspect.signature(compute).parameters
            shapes = {p.arg: p.value.shape for p in self.packed.values()}
            known = {"ops": ops_of(self.match, shapes), "plan": self.plan}
            options = {name: value for name, value in known.items() if name in asked}
            found = self.found = self._users("compute", compute, **ready, **options)
            tensors = outputs_of(found)
            check_types(f"composite {self.composite.name}, its compute", tensors, results)
            self.joined.settle(self)
            for value, tensor in zip(results, tensors, strict=True):
                self.tensors[value] = tensor
            made = [op for op in te_order(tensors) if op not in self.seen]
            self.stages[self.match.root] = made
            self.seen.update(made)
        self.described.append(call)


def _computed(tensor: Tensor, name: str) -> Tensor:
    """An output must be computed: one that a compute passes through from an input is copied."""
    if isinstance(tensor.op, te.ComputeOp):
        return tensor
    return te.compute(tensor.shape, lambda *i: tensor(*i), name=f"{name}_copy")


def _identifier(name: str, position: int) -> str:
    return re.sub(r"\W", "_", name) or f"arg{position}"
