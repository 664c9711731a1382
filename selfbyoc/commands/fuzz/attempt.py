"""What a worker process does with one program: writes, builds, runs and compares it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from random import Random

import numpy as np

from ...analysis.lint.file import declared_in
from ...analysis.verify.reference import Question
from ...analysis.verify.rounding import Rounding, no_worse, rounding
from ...errors import FallbackWarning, InputError, one_line
from ...graph import OpGraph
from ...language.composite import Composite
from ...language.known import default_registry, registry_of
from ...models.generation import tvm_road
from ...partition import decide_on, partition_for_tefuse
from ...partition.report import report
from ...runtime.build import build
from ...runtime.executors.generation import executor
from ...runtime.library import Library
from ...tvm.types import IRModule
from .grow import twin
from .meaning import graph_of, inputs, model, numbers
from .oracle import (
    Wanted,
    both_moved,
    differing,
    moved_by_inputs,
    moved_in_onnx_runtime,
    typed_as,
    wanted,
)
from .program import Program, from_json
from .targets import Setting

Array = np.ndarray
OTHER_INPUTS = ("borders", "negative", "zeros")


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
    oracle: str = ""  # who knows what is right, beside TVM alone
    unknown: str = ""  # why nobody else does
    undefined: bool = False  # raised, and an op has no meaning for its random inputs


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
    return tuple(declared_in(files) if files else default_registry())


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
        for kind in _kinds(program):
            result.stage = "run"
            result.found[kind] = _run(library, program, graph, kind)
    except Exception as err:  # the finding: TVM alone is asked next
        result.raised = one_line(err)
        result.undefined = wanted(program, graph, "random").undefined
        return result
    for kind in list(result.found):
        _compare(program, graph, kind, result)
    return result


def _kinds(program: Program) -> tuple[str, ...]:
    """The kinds of inputs; of a planted program one, as TVM alone is built for each."""
    other = Random(program.seed).choice(OTHER_INPUTS)
    return ("random",) if program.plant is not None else ("random", other)


def _built(mod: IRModule, program: Program, setting: Setting, result: Ours) -> Library:
    """The library. A built-in composite that raises is a fault, whoever takes over."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", FallbackWarning)
        library = _built_anyhow(mod, program, setting, result)
    for warning in told:
        if issubclass(warning.category, FallbackWarning):
            raise InputError(str(warning.message))
    return library


def _built_anyhow(mod: IRModule, program: Program, setting: Setting, result: Ours) -> Library:
    composites = composites_of(setting.composites)
    result.stage = "partition"
    target = setting.of(program)
    parted = partition_for_tefuse(mod, target=target, composites=composites)
    result.counts = dict(report(parted).counts)
    other = twin(program)
    if other is not None:
        result.twin_counts = _matched(other, composites)
    result.stage = "build"
    return build(parted, target, cache=False)


def _matched(other: Program, composites: Sequence[Composite]) -> dict[str, int] | None:
    """How often each composite matches a twin; None where TVM cannot write it."""
    try:
        mod = model(other, numbers(other, graph_of(other), "random"))
    except Exception:  # as in `ours`
        return None
    *_, told = decide_on(mod, None, registry_of(composites))
    return dict(told.counts)


def _run(library: Library, program: Program, graph: OpGraph, kind: str) -> list[Array]:
    given = inputs(program, graph, kind)
    return library(**{name: given[name] for name, _, _ in library.inputs})


def _compare(program: Program, graph: OpGraph, kind: str, result: Ours) -> None:
    known = wanted(program, graph, kind)
    if known.undefined:
        del result.found[kind]
        return
    result.oracle, result.unknown = known.by, known.why
    if known.outputs is not None:
        wrong = differing(result.found[kind], known.outputs, graph)
        if wrong:
            result.wrong[kind] = wrong


def alone(text: str, setting: Setting, kind: str, found: Sequence[Array] | None) -> Alone:
    """Build and run a program with TVM alone; compare with ours and with NumPy, if there is what to
    compare.
    """
    program = from_json(text)
    graph = graph_of(program)
    try:
        given = inputs(program, graph, kind)
        run = _by_tvm(program, setting, list(given))
        theirs = [np.array(array) for array in run(given)]
    except Exception as err:  # TVM's limit, whatever it raises
        theirs, raised = None, one_line(err)
    else:
        raised = ""
    if found is None:
        return Alone(raised)
    known = wanted(program, graph, kind)
    moved = _moved(program, graph, known, kind)
    if known.outputs is not None and moved and not differing(found, known.outputs, graph, moved):
        return Alone(raised, undecided=True)
    if theirs is None:
        return Alone(raised)
    if known.outputs is None:
        moved = moved or moved_by_inputs(run, given)
        return Alone("", not differing(found, theirs, typed_as(graph, theirs), both_moved(moved)))
    same = not differing(found, theirs, typed_as(graph, theirs))
    if no_worse(found, theirs, known.outputs):
        return Alone(undecided=True)
    return Alone("", same, not differing(theirs, known.outputs, graph))


def _moved(program: Program, graph: OpGraph, known: Wanted, kind: str) -> list[Rounding]:
    """How far rounding moves each output, where NumPy or ONNX Runtime can say it."""
    if known.values is None:
        return moved_in_onnx_runtime(program, graph, kind) if known.outputs is not None else []
    outputs = [known.values[v] for v in graph.outputs]
    with np.errstate(all="ignore"):
        found = rounding(graph, Question(kind, known.inputs, known.values), outputs, program.seed)
    # Eight draws miss the worst case now and then, and there are thousands of programs.
    return [replace(each, slack=2 * each.slack) for each in found]


def _by_tvm(
    program: Program, setting: Setting, names: Sequence[str]
) -> Callable[[Mapping[str, Array]], list[Array]]:
    mod = model(program, numbers(program, graph_of(program), "random"))
    call = executor.bound_arrays(tvm_road.default_build(mod, setting.of(program)), names)
    return lambda given: call([given[name] for name in names])
