"""What a worker process does with one program: writes, builds, runs and compares it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from ..analysis.lint.file import load_file
from ..analysis.verify.reference import Question, Rounding, no_worse, rounding
from ..codegen.target import host_target
from ..errors import InputError, UnsupportedOp, one_line
from ..graph import OpGraph
from ..language.composite import Composite
from ..language.known import default_registry, registry_of
from ..models.generation import tvm_road
from ..partition import check_target, decide, partition_for_tefuse
from ..partition.generation import ir
from ..partition.report import report
from ..runtime.build import build
from ..runtime.generation import runtime
from ..runtime.numpy_ops import all_values
from ..runtime.tolerance import difference, longest_reduction
from .grow import twin
from .meaning import graph_of, is_undefined, model, numbers
from .program import CONSTANT, Program, from_json

Array = np.ndarray
OTHER_INPUTS = ("borders", "negative", "zeros")


@dataclass(frozen=True)
class Setting:
    """What all programs of a run are built with: the target, and files of composites."""

    target: str | None = None
    composites: tuple[str, ...] = ()


@dataclass
class Ours:
    """What our build of a program gave. `wrong` are the kinds of inputs that NumPy disagrees on."""

    unwritten: str = ""  # TVM cannot write the program: why
    raised: str = ""
    stage: str = ""
    counts: dict[str, int] = field(default_factory=dict)  # matches by composite
    twin_counts: dict[str, int] | None = None
    found: dict[str, list[Array]] = field(default_factory=dict)
    wrong: dict[str, str] = field(default_factory=dict)  # by kind of input
    unknown: str = ""  # an op that NumPy has no meaning of


@dataclass(frozen=True)
class Alone:
    """What TVM alone makes of a program, beside what we made."""

    raised: str = ""
    as_ours: bool = False
    as_numpy: bool = False
    undecided: bool = False  # rounding alone explains the difference


@cache
def composites_of(files: tuple[str, ...]) -> tuple[Composite, ...]:
    """The composites that files declare, or the built-in ones."""
    if not files:
        return tuple(default_registry())
    found: list[Composite] = []
    for name in files:
        declared, findings = load_file(Path(name))
        if findings:
            raise InputError(f"{name}: {findings[0]}")
        found += [composite for _, composite in declared]
    return tuple({id(c): c for c in found}.values())


def ours(text: str, setting: Setting) -> Ours:
    """Build and run a program with our composites, and compare it with NumPy."""
    program, result = from_json(text), Ours()
    graph = graph_of(program)
    given = numbers(program, graph, "random")
    try:
        mod = model(program, given)
    except Exception as err:  # TVM's type rules raise whatever they like
        result.unwritten = one_line(err)
        return result
    try:
        library = _built(mod, program, setting, result)
        for kind in ("random", Random(program.seed).choice(OTHER_INPUTS)):
            result.stage = "run"
            result.found[kind] = _run(library, program, graph, kind)
    except Exception as err:  # the finding: TVM alone is asked next
        result.raised = one_line(err)
        return result
    for kind in list(result.found):
        _compare(program, graph, kind, result)
    return result


def _built(mod: Any, program: Program, setting: Setting, result: Ours) -> Any:
    composites = composites_of(setting.composites)
    result.stage = "partition"
    parted = partition_for_tefuse(mod, target=setting.target, composites=composites)
    result.counts = dict(report(parted).counts)
    other = twin(program)
    if other is not None:
        result.twin_counts = _matched(other, composites)
    result.stage = "build"
    return build(parted, setting.target, cache=False)


def _matched(other: Program, composites: Sequence[Composite]) -> dict[str, int] | None:
    """How often each composite matches a twin; None where TVM cannot write it."""
    try:
        mod = model(other, numbers(other, graph_of(other), "random"))
    except Exception:  # as in `ours`
        return None
    _, told = decide(ir.prepare(mod, None), registry_of(composites))
    return dict(told.counts)


def _inputs(program: Program, graph: OpGraph, kind: str) -> dict[str, Array]:
    made = numbers(program, graph, kind)
    leaves = zip(program.leaves(), graph.inputs, strict=True)
    return {v.name: made[v.name] for i, v in leaves if program.nodes[i].kind != CONSTANT}


def _run(library: Any, program: Program, graph: OpGraph, kind: str) -> list[Array]:
    given = _inputs(program, graph, kind)
    return library(**{name: given[name] for name, _, _ in library.inputs})


def _values(program: Program, graph: OpGraph, kind: str) -> tuple[list[Array], Mapping[int, Array]]:
    made = numbers(program, graph, kind)
    arrays = [made[v.name] for v in graph.inputs]
    with np.errstate(all="ignore"):
        return arrays, all_values(graph, arrays)


def _compare(program: Program, graph: OpGraph, kind: str, result: Ours) -> None:
    try:
        _, values = _values(program, graph, kind)
    except UnsupportedOp as err:
        result.unknown = str(err)
        return
    if is_undefined(graph, values):
        del result.found[kind]
        return
    wrong = differing(result.found[kind], [values[id(v)] for v in graph.outputs], graph)
    if wrong:
        result.wrong[kind] = wrong


def differing(
    found: Sequence[Array],
    wanted: Sequence[Array],
    graph: OpGraph,
    moved: Sequence[Rounding] = (),
) -> str:
    """'' where all outputs are the same within their tolerance (and what rounding moves),
    not-a-number at the same places.
    """
    if len(found) != len(wanted):
        return f"{len(found)} outputs, expected {len(wanted)}"
    reduction = longest_reduction(graph)
    for n, (value, a, b) in enumerate(zip(graph.outputs, found, wanted, strict=True)):
        if a.shape != b.shape or str(a.dtype) != value.dtype:
            return f"output {n}: {a.dtype}{list(a.shape)}, expected {value.type}"
        if a.dtype.kind == "f":
            both = np.isnan(a) & np.isnan(b)
            a, b = np.where(both, 0, a), np.where(both, 0, b)
        slack = 0.0
        if moved:
            slack = np.inf if moved[n].decides else moved[n].slack
            a = np.where(moved[n].left_out, b, a)
        wrong = difference(a, b, value.dtype, reduction, slack)
        if wrong is not None:
            return f"output {n}: {wrong}"
    return ""


def alone(text: str, setting: Setting, kind: str, found: Sequence[Array] | None) -> Alone:
    """Build and run a program with TVM alone; compare with ours and with NumPy, if there is what to
    compare.
    """
    program = from_json(text)
    graph = graph_of(program)
    try:
        theirs = _tvm_run(program, graph, setting, kind)
    except Exception as err:  # TVM's limit, whatever it raises
        theirs, raised = None, one_line(err)
    else:
        raised = ""
    if found is None:
        return Alone(raised)
    try:
        arrays, values = _values(program, graph, kind)
    except UnsupportedOp:
        return Alone(raised, theirs is not None and not differing(found, theirs, graph))
    exact = [values[id(v)] for v in graph.outputs]
    with np.errstate(all="ignore"):
        moved = rounding(graph, Question(kind, arrays, values), exact, program.seed)
    if not differing(found, exact, graph, moved):
        return Alone(raised, undecided=True)
    if theirs is None:
        return Alone(raised)
    if no_worse(found, theirs, exact):
        return Alone(undecided=True)
    same, right = (not differing(a, b, graph) for a, b in ((found, theirs), (theirs, exact)))
    return Alone("", same, right)


def _tvm_run(program: Program, graph: OpGraph, setting: Setting, kind: str) -> list[Array]:
    target = host_target() if setting.target is None else check_target(setting.target)
    mod = model(program, numbers(program, graph, "random"))
    native = tvm_road.default_build(mod, target)
    given = _inputs(program, graph, kind)
    call = runtime.bound_arrays(native, list(given))
    return call(list(given.values()))
