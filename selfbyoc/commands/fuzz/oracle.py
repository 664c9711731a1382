"""What is right, by somebody else than TVM: NumPy where it knows all ops, else ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ...analysis.verify.rounding import Rounding
from ...errors import UnsupportedOp
from ...graph import OpGraph, Value
from ...runtime.numpy_ops import all_values
from ...runtime.tolerance import ROUNDOFF, difference, longest_reduction
from .meaning import Array, inputs, is_undefined, numbers
from .onnx_writer import by_onnx_runtime, onnx_model
from .program import Program


@dataclass(frozen=True)
class Wanted:
    """The outputs as somebody knows them; all values on the way where NumPy knows those, of a
    planted program as it was before.
    """

    outputs: list[Array] | None
    by: str
    why: str = ""  # nobody knows them
    undefined: bool = False  # by the ops' own definitions
    inputs: Sequence[Array] = ()
    values: Mapping[Value, Array] | None = None


def wanted(program: Program, graph: OpGraph, kind: str) -> Wanted:
    """What a program's outputs should be for a kind of inputs."""
    made = numbers(program, graph, kind)
    arrays = [made[v.name] for v in graph.inputs]
    try:
        with np.errstate(all="ignore"):
            values = all_values(graph, arrays)
    except UnsupportedOp as err:
        return (
            _by_onnx_runtime(program, graph, kind) if program.onnx else Wanted(None, "", str(err))
        )
    if is_undefined(graph, values):
        return Wanted(None, "", undefined=True)
    outputs = [values[v] for v in graph.outputs]
    if program.plant is not None:
        return Wanted(None, "", "an attribute is planted", False, arrays, values)
    return Wanted(outputs, "NumPy", inputs=arrays, values=values)


def _by_onnx_runtime(program: Program, graph: OpGraph, kind: str) -> Wanted:
    try:
        written = onnx_model(program, numbers(program, graph, "random"))
        outputs = by_onnx_runtime(written, inputs(program, graph, kind))
    except UnsupportedOp as err:
        return Wanted(None, "", str(err))
    return Wanted(outputs, "ONNX Runtime")


_DRAWS = 8


def moved_in_onnx_runtime(program: Program, graph: OpGraph, kind: str) -> list[Rounding]:
    """How far the outputs of an ONNX model move when its inputs do by four roundoffs."""
    written = onnx_model(program, numbers(program, graph, "random"))
    return moved_by_inputs(partial(by_onnx_runtime, written), inputs(program, graph, kind))


def moved_by_inputs(
    run: Callable[[Mapping[str, Array]], Sequence[Array]], given: Mapping[str, Array]
) -> list[Rounding]:
    """How far what `run` gives moves when the inputs do by four roundoffs."""
    rng = np.random.default_rng(0)
    before = [np.array(array) for array in run(given)]  # the next run may write over it
    after = [[np.array(a) for a in run(_noisy(given, rng))] for _ in range(_DRAWS)]
    found = []
    for n, array in enumerate(before):
        with np.errstate(all="ignore"):
            steps = [np.abs(each[n].astype(float) - array.astype(float)) for each in after]
        most = np.nanmax(steps, axis=0, initial=0)
        is_float = array.dtype.kind == "f"
        slack = 2 * float(most.max(initial=0)) if is_float else 0.0
        found.append(Rounding(slack, np.zeros(most.shape, bool) if is_float else most > 0))
    return found


def _noisy(given: Mapping[str, Array], rng: np.random.Generator) -> dict[str, Array]:
    moved = {}
    for name, array in given.items():
        step = 4 * ROUNDOFF.get(str(array.dtype), 0.0) * rng.choice([-1.0, 1.0], array.shape)
        # Of an image of zeros a norm divides by the root of its epsilon whatever its mean left.
        size = array if array.any() else 1.0
        moved[name] = np.asarray(array + size * step, array.dtype)  # one number, too, is an array
    return moved


def differing(
    found: Sequence[Array],
    wanted: Sequence[Array],
    graph: OpGraph,
    moved: Sequence[Rounding] = (),
    reduction: int | None = None,
) -> str:
    """'' where all outputs are the same within their tolerance (and what rounding moves),
    not-a-number at the same places. `reduction`: of the longest chain of sums, if the graph does
    not say it.
    """
    if len(found) != len(wanted):
        return f"{len(found)} outputs, expected {len(wanted)}"
    reduction = longest_reduction(graph) if reduction is None else reduction
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


def typed_as(graph: OpGraph, found: Sequence[Array]) -> OpGraph:
    """A graph whose outputs have these arrays' types: a planted attribute may change them."""
    outputs = tuple(Value(a.shape, str(a.dtype)) for a in found)
    return replace(graph, outputs=outputs)


def both_moved(moved: Sequence[Rounding]) -> list[Rounding]:
    """How far two builds may be apart, each of which rounding moves: a planted program as far
    as the plain one, whose shapes may be others.
    """
    return [
        Rounding(np.inf if each.left_out.any() else 2 * each.slack, np.zeros((), bool))
        for each in moved
    ]
