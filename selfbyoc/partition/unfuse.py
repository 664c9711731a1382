"""`unfuse`: composites of a partitioned module back into the ops that they were."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from ..codegen.external import TARGET, read_attrs
from ..codegen.hook import hook
from ..codegen.target import host_target
from ..errors import InputError, did_you_mean
from ..tvm import make_target, module_with_attr, tvm
from ..tvm.types import Function, Target
from . import check_module, check_target
from .generation import inline, ir, steps
from .original_weights import Unpack, originals_of, with_originals
from .report import MATCHED, REPORT, UNFUSED, Report, report

Names = Collection[str]


def unfuse(
    mod: tvm.IRModule,
    names: Iterable[str] | None = None,
    *,
    separate: bool = False,
    target: Target | None = None,
) -> tvm.IRModule:
    """Composites of a partitioned module as ordinary ops of main again; `mod` is not changed.

    names      composites, root ops or symbols, as `report(mod).matched` has them; None: all of them
    separate   each op becomes a function of its own, which no pass of TVM fuses with another
    target     what it will be built for, if `separate`: by target, Relay takes some ops apart.
               None: the target of partitioning, else the host

    Weights are what they were before they were packed. Raises InputError for a module that was not
    partitioned, a name that it lacks, a kernel of a loop's step, and a packed weight that is not
    known any more.
    """
    check_module(mod)
    decided, external = report(mod), ir.external_functions(mod)
    target = None if target is None else check_target(target)
    chosen = list(external) if names is None else _chosen(decided, external, names)
    if inside := sorted(steps.kernels(mod) & set(chosen)):
        text = f"names: {inside[0]!r} is a kernel of the step of a loop; expected those of main"
        raise InputError(text)
    apart_for = (target or _told_target(external)) if separate else None
    done = inline.unfused(mod, chosen, Unpack(mod), apart_for)
    done = with_originals(done, originals_of(mod) if ir.external_functions(done) else {})
    symbols = {_symbol(external[name]) for name in chosen}
    return module_with_attr(done, REPORT, _after(decided, symbols, separate).to_json())


def _symbol(func: Function) -> str:
    return str(func.attrs["global_symbol"])


def _chosen(decided: Report, external: Mapping[str, Function], names: Iterable[str]) -> list[str]:
    """The external functions that are meant; all those that share a symbol."""
    if isinstance(names, str):
        raise InputError(f"names: expected a list of names, found {names!r} alone")
    asked = [str(name).removeprefix("tefuse.") for name in names]
    goes_by: dict[str, Names] = {name: _names(decided, func) for name, func in external.items()}
    known = {word for words in goes_by.values() for word in words}
    for name in asked:
        if name not in known:
            composites = sorted(decided.counts)
            raise InputError(
                f"names: {name!r} is no composite, root op or symbol of this module; its "
                f"composites are {composites}{did_you_mean(name, known)}"
            )
    return [name for name, words in goes_by.items() if any(word in words for word in asked)]


def _names(decided: Report, func: Function) -> Names:
    """What an external function may be called."""
    symbol = _symbol(func)
    composites = [name.removeprefix("tefuse.") for name in hook.composites(func)]
    return {symbol, *composites, *(r.root for r in decided.matched if r.symbol == symbol)}


def _told_target(external: Mapping[str, Function]) -> Target:
    """What partitioning was given to build for, or the host."""
    told = (read_attrs(func.attrs).get(TARGET) for func in external.values())
    found = next((target for target in told if target is not None), None)
    return host_target() if found is None else make_target(found)


def _after(decided: Report, symbols: Names, separate: bool) -> Report:
    """The report of what is matched now."""
    how = ", each in a function of its own" if separate else ""
    reason = f"its ops are main's again{how}, as unfuse was asked"
    gone = [r for r in decided.matched if r.symbol in symbols]
    freed = {op for record in gone for op in record.ops}
    records = tuple(
        replace(r, status=UNFUSED, reason=reason, symbol="", cause=UNFUSED)
        if r.status == MATCHED and r.symbol in symbols
        else r
        for r in decided.records
    )
    ops = tuple((op, kind, "" if op in freed else owner) for op, kind, owner in decided.ops)
    return replace(decided, records=records, ops=ops)
