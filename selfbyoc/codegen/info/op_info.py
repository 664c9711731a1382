"""Op info: the ordered ops of a function, as an attribute and as users read it.

What is kept on the function is what was true when it was recorded (`Recorded`). Reading it looks at
the function as it is now: its blocks, and whether its layout has changed since.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from ...errors import InputError
from ...tvm import Schedule, TVMError, structural_hash, tir, tvm
from ...tvm.types import Expr, PrimFunc
from .accesses import Accesses, accesses_of
from .layout_map import LayoutMap
from .layout_proof import Place, places
from .layout_rules import Before, moved
from .lineage import block_owners, computed_in
from .op_record import COMPOSITE, OP_INFO, OpInfo, Recorded, Ref, TensorInfo, from_json, to_json
from .source import Source
from .trace import is_clean, layout_prefix
from .unknown import UNKNOWN, Unknown

logger = logging.getLogger(__name__)

__all__ = ["OP_INFO", "UNKNOWN", "OpInfo", "TensorInfo", "attach", "op_info", "resealed"]


def attach(func: PrimFunc, recorded: Recorded) -> PrimFunc:
    """The PrimFunc with its op info: JSON in an attribute, which survives scheduling and
    databases; and with the name of its composite, for who reads the function.
    """
    names = dict.fromkeys(f"tefuse.{op.composite}" for op in recorded.ops if op.composite)
    if names:
        func = func.with_attr(COMPOSITE, ", ".join(names))
    return func.with_attr(OP_INFO, to_json(recorded))


def record(
    func: PrimFunc,
    ops: Sequence[OpInfo],
    refs: Sequence[tuple[Sequence[Ref], Sequence[Ref]]],
    results: Sequence[Source] = (),
) -> Recorded:
    """What to keep of a function in its original layouts, whose blocks are labelled.

    `refs` says for the inputs and outputs of each op which buffer holds them (see
    `op_record.Ref`), `results` what each output parameter holds.
    """
    held = tuple((tuple(ins), tuple(outs)) for ins, outs in refs)
    return Recorded(tuple(ops), held, accesses_of(func), seal_of(func), tuple(results))


def seal_of(func: PrimFunc) -> str:
    """Equal for functions that are equal but for their attributes."""
    names = [str(n) for n in func.attrs.keys()] if func.attrs is not None else []  # noqa: SIM118
    for name in names:
        func = func.without_attr(name)
    return str(structural_hash(func))


def recorded_of(func: PrimFunc) -> Recorded | None:
    """What was recorded on a PrimFunc; None for a function that has no op info."""
    if not isinstance(func, tir.PrimFunc):
        raise InputError(f"expected a PrimFunc or a Schedule of one, found {type(func).__name__}")
    if func.attrs is None or OP_INFO not in func.attrs.keys():  # noqa: SIM118 (no Python dict)
        return None
    return from_json(str(func.attrs[OP_INFO]))


def op_info(func: PrimFunc, original: PrimFunc | None = None) -> tuple[OpInfo, ...]:
    """The ordered ops of a PrimFunc, or of `main` in a Schedule; nothing where none were attached.

    Attributes follow a layout that was changed (`transform_layout`), as far as that can be proved
    from the function; what cannot is UNKNOWN. Given the function that a schedule began with, its
    trace is evidence too. Raises InputError for anything else, OpInfoError for damaged info.
    """
    proved = None
    if isinstance(func, Schedule):
        until = at_last_layout(func, original)
        proved = None if until is None else op_info(until)
        func = scheduled_function(func)
    recorded = recorded_of(func)
    if recorded is None:
        return ()
    now = accesses_of(func)
    blocks = block_owners(recorded, now)
    found = proved
    if found is None:
        unchanged = recorded.seal == seal_of(func)
        found = recorded.ops if unchanged else _in_layouts(recorded, places(recorded.accesses, now))
    return tuple(
        replace(info, blocks=blocks.get(info.name, ()), within=computed_in(info, recorded, now))
        for info in found
    )


def scheduled_function(sch: Schedule) -> PrimFunc:
    """The function that a schedule works on."""
    return sch.mod[_working_on(sch)]


def _working_on(sch: Schedule) -> Expr:
    """The function that a schedule works on: the one it was told, the only one, or `main`."""
    variables = list(sch.mod.get_global_vars())
    if sch.func_working_on is not None:
        return sch.func_working_on
    if len(variables) == 1:
        return variables[0]
    names = [v.name_hint for v in variables]
    if "main" not in names:
        raise InputError(f"the schedule has {names}; say which one with `sch.work_on(name)`")
    return sch.mod.get_global_var("main")


def at_last_layout(sch: Schedule, original: PrimFunc | None) -> PrimFunc | None:
    """The function after the last step of the trace that may have changed a layout, if the trace
    is the whole way from `original` to the schedule.
    """
    if original is None or sch.trace is None:
        return None
    name = _working_on(sch).name_hint
    begin = tvm.IRModule({name: original.with_attr("global_symbol", name)})  # kept: see apply.py
    replayed, until = Schedule(begin), Schedule(begin)
    try:
        sch.trace.apply_to_schedule(replayed, False)
        layout_prefix(sch.trace).apply_to_schedule(until, False)
    except (TVMError, RuntimeError) as err:
        logger.debug("the trace does not fit the function it is said to begin with: %s", err)
        return None
    is_all = seal_of(replayed.mod[name]) == seal_of(sch.mod[name])
    return until.mod[name] if is_all else None


def resealed(func: PrimFunc, sch: Schedule, recorded: Recorded) -> PrimFunc:
    """A function that `sch` made of a recorded one, with its op info (a schedule may have replaced
    the function); sealed anew if the schedule changed no layout.
    """
    clean = sch.trace is not None and is_clean(sch.trace)
    return attach(func, replace(recorded, seal=seal_of(func)) if clean else recorded)


def _in_layouts(recorded: Recorded, found: dict[int, Place]) -> tuple[OpInfo, ...]:
    return tuple(
        _op_in_layouts(info, refs, recorded.accesses, found)
        for info, refs in zip(recorded.ops, recorded.refs, strict=True)
    )


def _op_in_layouts(
    info: OpInfo,
    refs: tuple[tuple[Ref, ...], tuple[Ref, ...]],
    then: Accesses,
    found: dict[int, Place],
) -> OpInfo:
    """One op with attributes and tensors as they are now."""
    ins = [place_of(t, ref, then, found) for t, ref in zip(info.inputs, refs[0], strict=True)]
    outs = [place_of(t, ref, then, found) for t, ref in zip(info.outputs, refs[1], strict=True)]
    maps = [[place.layout for place in side] for side in (ins, outs)]
    same_dtypes = all(place.dtype is None for place in (*ins, *outs))
    if same_dtypes and all(m is not None and m.is_identity for side in maps for m in side):
        return info
    before = Before(
        info.attrs, tuple(t.shape for t in info.inputs), tuple(t.shape for t in info.outputs)
    )
    change = moved(info.kind, before, *maps)
    return replace(
        info,
        attrs={**info.attrs, **change.attrs},
        inputs=tuple(map(_tensor, info.inputs, ins, change.inputs)),
        outputs=tuple(map(_tensor, info.outputs, outs, change.outputs)),
    )


def place_of(tensor: TensorInfo, ref: Ref, then: Accesses, found: dict[int, Place]) -> Place:
    """Where a tensor of an op is; one that no buffer ever held is as the op defines it."""
    if ref is None:
        return Place(LayoutMap.identity(len(tensor.shape)))
    buffer = then.params[ref[1]] if ref[0] == "param" else then.blocks[ref[1]].stores[0].buffer
    place = found[buffer]
    if tuple(then.shapes[buffer]) == tuple(tensor.shape):
        return place
    # The buffer never had the op's own axes (a packed weight): unchanged, or not known.
    if place.layout is not None and place.layout.is_identity:
        return Place(LayoutMap.identity(len(tensor.shape)), dtype=place.dtype)
    return Place(None, dtype=place.dtype)


def _tensor(tensor: TensorInfo, place: Place, layout: str | Unknown | None) -> TensorInfo:
    if place.dtype is not None:
        tensor = replace(tensor, dtype=place.dtype)
    if place.layout is None:
        held = place.present if place.present is not None else UNKNOWN
        return TensorInfo(held, tensor.dtype, UNKNOWN)
    if tensor.layout is None and layout is None and place.layout.is_identity:
        return tensor
    if None in tensor.shape:
        return TensorInfo(UNKNOWN, tensor.dtype, layout)
    return TensorInfo(place.layout.shape(tensor.shape), tensor.dtype, layout)
