"""Which schedule each match takes, and the plan that it follows, by the code that decides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ...codegen.apply import DEFAULT, Level, level_of
from ...codegen.external import (
    COMPOSITE,
    NOT_OWN,
    TARGET,
    External,
    match_of,
    packed_params,
    read_attrs,
)
from ...codegen.fallback import reason_of
from ...codegen.hook import hook
from ...codegen.pack import why_widened
from ...codegen.plan import plan_of
from ...codegen.schedule import schedule_external
from ...codegen.tuning_record import Tuned, told_by
from ...errors import SelfbyocError, one_line
from ...graph import Symbol, sizes_text, symbols_in
from ...language.decisions import for_every_size_of
from ...language.known import composite_of, is_builtin
from ...language.match.match import Match
from ...language.registry import Registry
from ...machine.gpu import is_gpu
from ...partition.generation import ir
from ...partition.report import Record, report
from ...tvm import make_target
from ...tvm.types import IRModule, Target

Leveler = Callable[[Record], Level]
Packed = Mapping[str, Sequence[int] | None]


def levels_of_matches(registry: Registry, matches: Sequence[Match], target: Target) -> Leveler:
    """The level of a match in a module that is not partitioned yet."""
    found = {(m.composite.name, m.root.name): m for m in matches}

    def level(record: Record) -> Level:
        match = found[record.composite, record.root]
        constants = {
            n for n, v in match.args.items() if v.is_constant and match.composite.pack_for(n)
        }
        decided = level_of(registry[record.composite], target)
        return _planned(decided, _by_itself(match.own), target, None, dict.fromkeys(constants))

    return level


def _by_itself(match: Match) -> Match:
    """The match with its ops named as in an external function: `dense_7` of a model is `dense`."""
    counts: Counter[str] = Counter()
    ops = []
    for call in match.ops:
        number = counts[call.kind]
        counts[call.kind] += 1
        ops.append(replace(call, name=f"{call.kind}_{number}" if number else call.kind))
    return match.with_ops(ops)


def levels_of_kernels(mod: IRModule, target: Target) -> Leveler:
    """The level of a match by its external function, which may say more than its composite."""
    functions = {
        str(f.attrs["global_symbol"]): f for f in ir.external_functions(mod).values() if f.attrs
    }
    sizes = {name: Symbol(size, name) for name, size in report(mod).sizes}

    def level(record: Record) -> Level:
        func = functions[record.symbol]
        attrs = read_attrs(func.attrs)
        composite = composite_of([record.composite], attrs.get(COMPOSITE))
        assert composite is not None, f"no composite for {hook.composites(func)}"
        told = make_target(attrs[TARGET]) if TARGET in attrs else target
        tuned = Tuned.of(attrs)
        why_not = attrs.get(NOT_OWN, "") or reason_of(record.symbol, told)
        decided = level_of(composite, told, why_not, tuned)
        on_gpu = decided.name == DEFAULT and is_gpu(told)
        if composite.kernel is None and not on_gpu:
            return decided
        source = hook.source_of(func, record.symbol, attrs)
        if source.symbols:
            source = source.at({name: sizes.get(name, size) for name, size in source.sizes.items()})
        if on_gpu:
            return _as_scheduled(decided, source, told)
        packed = {p.arg: p.value.shape for p in packed_params(source).values()}
        return _planned(decided, match_of(source), told, tuned, packed)

    return level


def _as_scheduled(level: Level, source: External, target: Target) -> Level:
    """The level as the default schedule says it for a GPU: what it does it sees in the stages."""
    try:
        _, scheduled = schedule_external(source, target)
    except SelfbyocError:
        return level
    return scheduled.level


def _of_halves(match: Match, packed: Packed, plan: object) -> str:
    """Of each weight of halves, whether it stays so, or why it became floats."""
    told = ""
    for name, value in match.args.items():
        if not value.held or name not in packed:
            continue
        why = why_widened(match, name, plan)
        told += f"; {name} is {f'floats, not {value.held}: {why}' if why else value.held}"
    return told


def _planned(
    level: Level, match: Match, target: Target, tuned: Tuned | None, packed: Packed
) -> Level:
    """The level with the plan of the composite's kernel, if it has one and follows it."""
    if match.composite.kernel is None or level.name == DEFAULT:
        return level
    sizes = symbols_in(value for call in match.ops for value in (*call.inputs, *call.outputs))
    at = f", at {sizes_text(sizes)}" if sizes else ""
    try:
        with for_every_size_of(sizes.values()), target, told_by(tuned):
            plan = plan_of(match, packed)
            return replace(level, plan=f"{plan}{_of_halves(match.own, packed, plan)}{at}")
    except SelfbyocError as err:
        if not is_builtin(match.composite):
            raise
        return Level(DEFAULT, one_line(err))
