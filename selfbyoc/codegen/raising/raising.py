"""`raise_ops`: the ops of a PrimFunc as a graph, in the layouts that they have now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import OpInfoError, RaiseError
from ...graph import OpGraph, Value
from ...tvm import Schedule, held_constants
from ...tvm.types import PrimFunc
from ..info.accesses import accesses_of
from ..info.layout_map import LayoutMap
from ..info.layout_proof import Place, places
from ..info.op_info import (
    at_last_layout,
    place_of,
    recorded_of,
    scheduled_function,
    seal_of,
)
from ..info.op_record import OP_INFO, OpInfo, Recorded, TensorInfo
from ..info.source import CONSTANT, DATA, OP, PARAM, Source
from .changes import Calls
from .flow import check_flow
from .forms import Form, form_in, forms, missing
from .parameters import Parameters

Key = tuple[str, int]  # an output of an op


def raise_ops(
    func: PrimFunc, original: PrimFunc | None = None, *, materialize: bool = True
) -> OpGraph:
    """The graph of ops that a PrimFunc with op info computes, or `main` in a Schedule.

    original     the function that the schedule began with: its trace is evidence too
    materialize  an op that has no form in a layout computes in its own, between changes of layout
                 (transposes and reshapes); False: that is a RaiseError

    The inputs and outputs are those of the function: same order, shapes and layouts. Between ops
    each value has the layout of its buffer, where that is known. Raises RaiseError for a function
    without op info, a parameter whose layout cannot be proved, and one that comes packed.
    """
    if isinstance(func, Schedule):
        func = at_last_layout(func, original) or scheduled_function(func)
    recorded = recorded_of(func)
    if recorded is None:
        raise RaiseError.of("", "", f"the PrimFunc has no op info (attribute {OP_INFO})")
    if not recorded.results:
        raise RaiseError.of(
            "", "", "the op info says nothing of edges: an older version recorded it"
        )
    return _Raising(func, recorded, materialize).graph()


def parameter_maps(func: PrimFunc) -> list[LayoutMap | None]:
    """The layout of each parameter of a function with op info, against the one it was recorded in;
    None where that cannot be proved.
    """
    recorded = recorded_of(func)
    assert recorded is not None
    then = recorded.accesses
    if recorded.seal == seal_of(func):
        return [LayoutMap.identity(len(then.shapes[buffer])) for buffer in then.params]
    found = places(then, accesses_of(func))
    return [found[buffer].layout for buffer in then.params]


@dataclass(frozen=True)
class _Held:
    """A value of the graph, the axes that its op gives it, and how they lie in it."""

    value: Value
    shape: tuple[Any, ...]
    layout: LayoutMap


class _Raising:
    """One function, op by op."""

    def __init__(self, func: PrimFunc, recorded: Recorded, materialize: bool) -> None:
        self.recorded, self.materialize = recorded, materialize
        self.ops = {info.name: info for info in recorded.ops}
        self.refs = dict(zip(self.ops, recorded.refs, strict=True))
        now = accesses_of(func)
        self.found: dict[int, Place] | None = None
        if recorded.seal != seal_of(func):
            self.found = places(recorded.accesses, now)
        self.params = Parameters(func, recorded, now, self.found)
        self.calls = Calls()
        self.held: dict[Key, _Held] = {}
        self.layouts: dict[Key, LayoutMap | None] = {}
        self.data = held_constants(func)
        self.readers = _readers(recorded)
        self.needed = _needed(recorded, self.ops)
        if self.found is not None:
            check_flow(recorded, now)

    def graph(self) -> OpGraph:
        for info in self.needed:
            self._op(info)
        outputs = [self._result(k, s) for k, s in enumerate(self.recorded.results)]
        return OpGraph(self.params.inputs, tuple(self.calls.ops), tuple(outputs))

    # Layouts of values.

    def _layout(self, key: Key) -> LayoutMap | None:
        """The present layout of what an op computes; None where nothing shows it."""
        if key not in self.layouts:
            name, index = key
            tensor, ref = self.ops[name].outputs[index], self.refs[name][1][index]
            place = Place(LayoutMap.identity(len(tensor.shape)))
            if self.found is not None:
                place = place_of(tensor, ref, self.recorded.accesses, self.found)
            if place.dtype is not None:
                reason = f"the function keeps it in another dtype than {tensor.dtype}"
                raise RaiseError.of(name, f"output {index}", reason)
            self.layouts[key] = place.layout if ref is not None else None
        return self.layouts[key]

    def _wanted(self, key: Key) -> LayoutMap:
        """The layout that a value is to have: that of its buffer. Of one that no buffer holds, or
        that is not known: of what is computed of it in place, else its own.
        """
        shape = self.ops[key[0]].outputs[key[1]].shape
        seen = set()
        while (found := self._layout(key)) is None and key not in seen:
            seen.add(key)
            following = [
                (reader.name, i)
                for reader in self.readers.get(key, ())
                for i, out in enumerate(reader.outputs)
                if out.shape == shape
            ]
            if len(following) != 1:
                break
            key = following[0]
        found = self._layout(key) or self._of_result(key, shape)
        return found or LayoutMap.identity(len(shape))

    def _of_result(self, key: Key, shape: Sequence[Any]) -> LayoutMap | None:
        """Of a value that the function returns: as the parameter is laid out."""
        for position, source in enumerate(self.recorded.results):
            if (source.kind, source.name, source.index) == (OP, *key):
                return self.params.result_layout(position, len(shape))
        return None

    # Ops.

    def _op(self, info: OpInfo) -> None:
        ins = [self._read(info, i) for i in range(len(info.inputs))]
        keys = [(info.name, i) for i in range(len(info.outputs))]
        wanted = [self._wanted(key) for key in keys]
        form = self._form(info, [h.layout for h in ins], wanted)
        read = [
            self.calls.change(h.value, h.shape, h.layout, layout)
            for h, layout in zip(ins, form.inputs, strict=True)
        ]
        made = []
        for (_, index), tensor, layout in zip(keys, info.outputs, form.outputs, strict=True):
            name = f"{info.name}[{index}]" if index else info.name
            made.append(Value(_shape(tensor, layout), str(tensor.dtype), name))
        self.calls.add(info.name, info.kind, read, form.attrs, made)
        for key, value, tensor, was, now in zip(
            keys, made, info.outputs, form.outputs, wanted, strict=True
        ):
            shape = tuple(tensor.shape)
            self.held[key] = _Held(self.calls.change(value, shape, was, now), shape, now)

    def _form(self, info: OpInfo, ins: Sequence[LayoutMap], wanted: Sequence[LayoutMap]) -> Form:
        exact = form_in(info, ins, wanted)
        if exact is not None:
            return exact
        if not self.materialize:
            what = missing(info, ins, wanted)
            reason = f"{info.kind} has no form in this layout of its tensors"
            raise RaiseError.of(info.name, what, reason)
        return next(forms(info, ins, wanted))

    def _read(self, info: OpInfo, index: int) -> _Held:
        """An input as it is there."""
        source, tensor = info.sources[index], info.inputs[index]
        if source.kind == OP:
            return self.held[source.name, source.index]
        shape = tuple(tensor.shape)
        own = LayoutMap.identity(len(shape))
        if source.kind == PARAM:
            value, layout = self.params.read(info, index, source.index)
            if value.dtype != tensor.dtype:  # halves that the op reads as floats
                result = (value.shape, str(tensor.dtype))
                value = self.calls.one("cast", value, {"dtype": str(tensor.dtype)}, result)
            return _Held(value, shape, layout)
        if source.kind == CONSTANT:
            constant = Value(shape, tensor.dtype, is_constant=True, scalar=source.value)
            return _Held(constant, shape, own)
        if source.kind == DATA and source.index < len(self.data):
            array = self.data[source.index]
            name = f"constant_{source.index}"
            made = Value(shape, tensor.dtype, name, is_constant=True, data=array)
            return _Held(made, shape, own)
        raise RaiseError.of(info.name, f"input {index}", "recording could not follow its source")

    def _result(self, position: int, source: Source) -> Value:
        """What an output parameter holds, as it is laid out."""
        what = f"output {position}"
        if source.kind == OP:
            held = self.held[source.name, source.index]
        elif source.kind == PARAM:
            held = _Held(*self.params.returned(source.index, what))
        else:
            raise RaiseError.of("", what, f"it is no op's result, but {source!r}")
        layout = self.params.result_layout(position, len(held.shape))
        if layout is None:
            raise RaiseError.of(source.name, what, self.params.why(self.params.result_at(position)))
        return self.calls.change(held.value, held.shape, held.layout, layout)


def _shape(tensor: TensorInfo, layout: LayoutMap) -> tuple[Any, ...]:
    return layout.shape(tensor.shape)


def _readers(recorded: Recorded) -> Mapping[Key, list[OpInfo]]:
    """Output -> the ops that read it."""
    found: dict[Key, list[OpInfo]] = {}
    for info in recorded.ops:
        for source in dict.fromkeys(info.sources):
            if source.kind == OP:
                found.setdefault((source.name, source.index), []).append(info)
    return found


def _needed(recorded: Recorded, ops: Mapping[str, OpInfo]) -> list[OpInfo]:
    """The ops that the results are computed by, each after those that it reads."""
    done: dict[str, OpInfo] = {}
    begun: set[str] = set()
    stack = [s.name for s in reversed(recorded.results) if s.kind == OP]
    while stack:
        name = stack[-1]
        waiting = [s.name for s in ops[name].sources if s.kind == OP and s.name not in done]
        if name in done or not waiting:
            done.setdefault(stack.pop(), ops[name])
            continue
        begun.add(name)
        if again := begun & set(waiting):
            raise OpInfoError(f"op info: {min(again)} reads what is computed of it")
        stack += waiting[::-1]
    return list(done.values())
