"""What a worker process does with a mutant: it runs in ONNX Runtime, is built, and compared."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from ....common.optional import extra
from ....errors import FallbackWarning, InputError, ModelWarning, SelfbyocError, one_line
from ....graph import OpGraph, Value
from ....models.from_onnx import from_onnx
from ....models.generation import tvm_road
from ....models.onnx.graph import opset_of
from ....partition import partition_for_tefuse
from ....partition.report import report
from ....runtime.build import build
from ....runtime.executors.generation import executor
from ....runtime.library import Library
from ....runtime.tolerance import bound_of
from ....tvm.types import IRModule
from ...bench.reference import OLDEST_OPSET, reference
from ..attempt import Alone, composites_of
from ..generation import planter
from ..oracle import differing
from ..targets import Setting
from .mutant import KINDS, Array, Mutant
from .protos import session
from .rounding import moved, overflows

if TYPE_CHECKING:
    import onnx


# ONNX Runtime's Sigmoid knows no numbers below that of -18: what a model makes of them alone.
_SIGMOID = 1e-7
TERMS = 4096  # of not all chains of sums the length is known; 2e-5 of the largest output
SLACK = 4.0  # times ONNX Runtime's own error: what amplifies its rounding amplifies ours


@dataclass
class Tried:
    """What became of a mutant."""

    invalid: str = ""  # ONNX Runtime does not run it: why
    refused: str = ""  # by us, with an error that says why
    raised: str = ""
    stage: str = ""
    counts: dict[str, int] = field(default_factory=dict)  # matches by composite
    found: dict[str, list[Array]] = field(default_factory=dict)  # by kind of inputs, where wrong
    wrong: dict[str, str] = field(default_factory=dict)
    undefined: int = 0  # kinds of inputs of which a result is no finite number


def runs(mutant: Mutant) -> bool:
    """Whether ONNX Runtime does, with each kind of inputs."""
    return not isinstance(_known(mutant), str)


def _known(mutant: Mutant) -> dict[str, list[Array]] | str:
    """What is right for each kind of inputs, or why nobody knows."""
    try:
        opened = session(mutant.model)
        found = {kind: opened.run(None, mutant.inputs(kind)) for kind in kinds(mutant)}
    except Exception as err:  # its own classes, one for each reason
        return one_line(err)
    arrays = [a for outputs in found.values() for a in outputs]
    usual = all(isinstance(a, np.ndarray) and a.size and a.dtype.kind in "fiub" for a in arrays)
    return found if usual else "an output is no tensor, or has no element"


def kinds(mutant: Mutant) -> tuple[str, ...]:
    """Random inputs and one other kind."""
    return KINDS[:1] if mutant.given else (KINDS[0], Random(mutant.seed).choice(KINDS[1:]))


def ours(mutant: Mutant, setting: Setting) -> Tried:
    """Build and run a mutant with our composites, and compare it with ONNX Runtime."""
    known = _known(mutant)
    if isinstance(known, str):
        return Tried(invalid=known)
    result = Tried(stage="import")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelWarning)
            mod = from_onnx(mutant.proto)
    except SelfbyocError as err:
        result.refused = one_line(err)
        return result
    except Exception as err:  # the finding
        result.raised = one_line(err)
        return result
    try:
        library = _built(mod, setting.of(mutant), setting, result)
        result.stage = "run"
        given = {kind: mutant.inputs(kind) for kind in known}
        made = {kind: [np.array(a) for a in library(**given[kind])] for kind in known}
    except Exception as err:  # the finding: TVM alone is asked next
        result.raised = one_line(err)
        return result
    for kind, wanted in known.items():
        _compare(mutant, kind, made[kind], wanted, result)
    return result


def _built(mod: IRModule, target: str | None, setting: Setting, result: Tried) -> Library:
    """The library. A built-in composite that raises is a fault, whoever takes over."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", FallbackWarning)
        result.stage = "partition"
        composites = composites_of(setting.composites)
        parted = partition_for_tefuse(mod, target=target, composites=composites)
        result.counts = dict(report(parted).counts)
        result.stage = "build"
        library = build(parted, target, cache=False)
    for warning in told:
        if issubclass(warning.category, FallbackWarning):
            raise InputError(str(warning.message))
    return library


def _compare(
    mutant: Mutant, kind: str, found: list[Array], wanted: list[Array], result: Tried
) -> None:
    if not all(map(_is_finite_alike, found, wanted)):
        result.undefined += 1
        return
    wrong = _differing(found, wanted)
    if not wrong:
        return
    given = mutant.inputs(kind)
    if overflows(mutant, given):
        result.undefined += 1
        return
    wrong = differing(found, wanted, _outputs(wanted), moved(mutant, given), TERMS)
    if wrong and not _is_as_good(mutant, given, found, wanted):
        result.found[kind], result.wrong[kind] = found, wrong


def _is_finite_alike(found: Array, wanted: Array) -> bool:
    """Whether nothing is infinite or no number but what is so in both: what becomes of it is a
    matter of the order in which it is computed.
    """
    here = np.isfinite(wanted)
    return bool(here.all()) or (
        found.shape == wanted.shape and bool((np.isfinite(found) == here).all())
    )


def _differing(found: Sequence[Array], wanted: Sequence[Array]) -> str:
    return differing(found, wanted, _outputs(wanted), reduction=TERMS)


def _outputs(arrays: Sequence[Array]) -> OpGraph:
    return OpGraph((), (), tuple(Value(a.shape, str(a.dtype)) for a in arrays))


def _is_as_good(
    mutant: Mutant, given: Mapping[str, Array], found: Sequence[Array], theirs: Sequence[Array]
) -> bool:
    """Whether ONNX's own implementation in float64 says that we are no further off than a few times
    what ONNX Runtime is.
    """
    if "Sigmoid" in mutant.kinds() and all(map(_is_tiny, found, theirs)):
        return True
    if opset_of(mutant.proto) < OLDEST_OPSET:
        return False
    try:
        exact = [np.asarray(a) for a in reference(mutant.proto, given)]
    except Exception:  # plain errors of many kinds, for an op that it lacks
        return False
    return all(_is_near(*row) for row in zip(found, theirs, exact, strict=True))


def _is_tiny(found: Array, theirs: Array) -> bool:
    """Whether they are the same, or both are as good as zero."""
    if found.shape != theirs.shape or found.dtype.kind != "f":
        return not _differing([found], [theirs])
    return bool(max(np.abs(found).max(), np.abs(theirs).max()) < _SIGMOID) or not _differing(
        [found], [theirs]
    )


def _is_near(found: Array, theirs: Array, exact: Array) -> bool:
    if found.shape != exact.shape or theirs.shape != exact.shape:
        return False
    off, their = (
        np.abs(a.astype(float) - exact.astype(float)).max(initial=0) for a in (found, theirs)
    )
    return bool(off <= SLACK * their + bound_of(exact, str(theirs.dtype), TERMS))


def alone(mutant: Mutant, setting: Setting, kind: str, found: Sequence[Array] | None) -> Alone:
    """Build and run a mutant without any composite; with TVM's own frontend where there is
    something to compare, else as we read it.
    """
    model, names = _numbered(mutant)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mod = from_onnx(model) if found is None else planter.by_frontend(model)
            call = executor.bound_arrays(
                tvm_road.default_build(mod, setting.of(mutant)), list(names.values())
            )
        given = mutant.inputs(kind)
        theirs = [np.array(a) for a in call([given[name] for name in names])]
    except Exception as err:  # TVM's limit, whatever it raises
        return Alone(one_line(err))
    return Alone(as_ours=found is not None and not _differing(found, theirs))


def _numbered(mutant: Mutant) -> tuple[onnx.ModelProto, dict[str, str]]:
    """With plain names of inputs, which no frontend changes; -> by their own."""
    model = extra("onnx").load_from_string(mutant.model)
    names = {value.name: f"input{n}" for n, value in enumerate(model.graph.input)}
    handed = [
        extra("onnx").helper.make_node("Identity", [new], [old]) for old, new in names.items()
    ]
    for value in model.graph.input:
        value.name = names[value.name]
    rest = list(model.graph.node)
    copies = [type(n).FromString(n.SerializeToString()) for n in rest]
    del model.graph.node[:]
    model.graph.node.extend([*handed, *copies])
    return model, names
