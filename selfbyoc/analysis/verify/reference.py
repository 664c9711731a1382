"""What a kernel must compute: NumPy's meaning of its ops, and the composite's own reference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...errors import UnsupportedOp
from ...graph import OpCall, OpGraph, Value
from ...language.growing import Elementwise, Repeat
from ...language.match.match import Match
from ...language.nodes import Either, Item, Node, Op
from ...ops.vocabulary import complete
from ...runtime.numpy_ops import all_values
from .inputs import LARGE, Array, arrays, is_float

NUMPY, OWN_REFERENCE, TVM = "NumPy", "the composite's reference", "TVM's own build"


@dataclass(frozen=True)
class Question:
    """The inputs of one run, and what the ops mean on them in NumPy (None: no meaning known)."""

    kind: str
    inputs: Sequence[Array]
    values: Mapping[Value, Array] | None
    why_not: str = ""  # the run is no use: why


def question(graph: OpGraph, constants: Mapping[int, Array], kind: str, seed: int) -> Question:
    """Make the inputs of a kind; a `large` is made smaller until the result is finite."""
    asked = Question(kind, [], None, "no size gives a finite result")
    for size in LARGE if kind == "large" else LARGE[:1]:
        asked = _question(graph, constants, kind, seed, size)
        if not asked.why_not:
            break
    return asked


def _question(
    graph: OpGraph, constants: Mapping[int, Array], kind: str, seed: int, size: float
) -> Question:
    made = arrays(graph, constants, kind, seed, size)
    if kind == "nan":
        return Question(kind, made, None)
    try:
        with np.errstate(all="ignore"):
            values = all_values(graph, made)
    except UnsupportedOp as err:
        return Question(kind, made, None, str(err) if kind == "large" else "")
    return Question(kind, made, values, _too_large(graph, values, kind))


def _too_large(graph: OpGraph, values: Mapping[Value, Array], kind: str) -> str:
    """Why a kernel of the graph's own dtypes cannot compute these values, or ''."""
    for call in graph.ops:
        for value in (v for v in call.outputs if is_float(v) and v in values):
            array, limit = values[value], _largest(value.dtype)
            if kind == "large":  # squares, and sums of 4096 of them, must fit
                limit = (limit / 4096) ** 0.5
            if not np.isfinite(array).all() or np.abs(array).max(initial=0) > limit:
                return f"{call.name} is not finite in {value.dtype} on it"
    return ""


def _largest(dtype: str) -> float:
    return 3e38 if dtype == "bfloat16" else float(np.finfo(dtype).max)


def own_reference(
    match: Match, graph: OpGraph, values: Mapping[Value, Array]
) -> list[Array] | None:
    """The composite's reference on the values of its arguments; None where it does not apply.

    A reference is NumPy of the pattern as it stands. A match with other attributes (strides, an
    axis), or without an optional argument, is another function.
    """
    reference = match.composite.reference
    if reference is None or not _is_the_pattern(match, graph):
        return None
    with np.errstate(all="ignore"):
        found = reference(**{name: values[v] for name, v in match.args.items()})
    return [np.asarray(a) for a in (found if isinstance(found, (list, tuple)) else [found])]


def _is_the_pattern(match: Match, graph: OpGraph) -> bool:
    """Whether every op is as the pattern's own text says, all attributes at their defaults."""
    if set(match.args) != set(match.composite.arg_names):
        return False
    nodes = _as_emitted(match.composite.outputs)
    kinds = Counter(node.kind for node in nodes)
    if kinds != Counter(call.kind for call in match.ops):
        return False
    return all(any(_says(node, call) for node in nodes) for call in match.ops)


def _as_emitted(outputs: Sequence[Node]) -> list[Op]:
    """The ops of a pattern all of whose arguments are given: the first option of each choice."""
    found: dict[Op, None] = {}
    stack = list(outputs)
    while stack:
        node = stack.pop()
        if isinstance(node, Either):
            stack.append(node.options[0])
        elif isinstance(node, (Item, Elementwise, Repeat)):
            stack.append(node.of)
        elif isinstance(node, Op) and node not in found:
            found[node] = None
            stack.extend(node.inputs)
    return list(found)


# Attributes that follow from the types, or that no importer leaves at another value.
_FREE_ATTRS = frozenset({"out_dtype", "out_layout", "ties"})


def _says(node: Op, call: OpCall) -> bool:
    """Whether a pattern's op, written as a program, would have this op's attributes."""
    if node.kind != call.kind:
        return False
    wanted = complete(node.kind, {k: v for k, v in node.attrs.items() if not callable(v)})
    for name, found in call.attrs.items():
        if name in _FREE_ATTRS:
            continue
        if name not in wanted or _plain(wanted[name], name, call) != _plain(found, name, call):
            return False
    return True


def _plain(value: object, name: str, call: OpCall) -> object:
    if name == "axis" and isinstance(value, int):
        return value % call.outputs[0].ndim
    return tuple(value) if isinstance(value, list) else value
