"""What a kernel must compute: NumPy's meaning of its ops, and the composite's own reference."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from ...errors import UnsupportedOp
from ...graph import OpCall, OpGraph, Value
from ...language.growing import Elementwise, Repeat
from ...language.match.bound import Bound
from ...language.match.growing import arguments
from ...language.match.match import MOST_WAYS, Match, Ways
from ...language.nodes import Arg, Either, Item, Many, Node, Op, reachable
from ...ops.attrs import in_one_spelling
from ...ops.vocabulary import KINDS, complete
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


def own_reference(match: Match, graph: OpGraph, values: Mapping[Value, Array]) -> list[Array] | str:
    """What the composite's reference gives for `match.own.outputs`, on the values of the match's
    arguments; or why it is not compared, '' where the composite has none.

    A reference is NumPy of the pattern as it stands. A match with other attributes (strides, an
    axis) than the pattern says, or by another of its alternatives, is another function.
    """
    reference, own = match.composite.reference, match.own
    if reference is None:
        return ""
    if why := _why_another(own, graph, reference):
        return why
    if absent := [name for name, v in own.args.items() if v not in values]:
        return f"{absent[0]} is computed by ops without a NumPy meaning"
    with np.errstate(all="ignore"):
        found = reference(**{name: values[v] for name, v in own.args.items()})
    return [np.asarray(a) for a in (found if isinstance(found, (list, tuple)) else [found])]


def _why_another(match: Match, graph: OpGraph, reference: Callable[..., Any]) -> str:
    """Why the match is not the function that the pattern's own text says, or ''."""
    if why := _why_not_called(match, reference):
        return why
    bound = _bound(match, graph)
    if bound is None:
        return "the pattern fits these ops in too many ways"
    others = (_chains(bound), _alternatives(match, bound), _attributes(bound))
    return next((text for texts in others for text in texts), "")


def _why_not_called(match: Match, reference: Callable[..., Any]) -> str:
    try:
        inspect.signature(reference).bind(**dict.fromkeys(match.args))
    except TypeError as err:
        absent = [name for name in match.composite.arg_names if name not in match.args]
        return f"this match has no argument {absent[0]!r}" if absent else f"it has {err}"
    except ValueError:  # written in C, without a signature
        return ""
    return ""


def _bound(match: Match, graph: OpGraph) -> Bound | None:
    """The match once more, with the op that each node of the pattern stands for."""
    names, ops = match.composite.arg_names, set(match.ops)
    for root in reversed(match.ops):
        for bound in islice(Ways(match.composite, graph, root).bounds(), MOST_WAYS):
            ordered = graph.in_order(bound.ops)
            if ops == {*ordered} and arguments(bound, names, ordered)[0] == match.args:
                return bound
    return None


def _chains(bound: Bound) -> Iterator[str]:
    """Ops that the pattern does not name."""
    for node, count in bound.counts:
        if isinstance(node, Elementwise) and count:
            yield "an `elementwise` of the pattern stands for ops that it does not name"


def _alternatives(match: Match, bound: Bound) -> Iterator[str]:
    """Choices where another option was taken than the first whose arguments are all there, which is
    the one that the pattern as a program has.
    """
    stack, seen = list(match.composite.outputs), set[Node]()
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if isinstance(node, (Many, Repeat)):
            block = node.instance(0) if isinstance(node, Many) else node.first
            if any(isinstance(inner, Either) for inner in reachable(block)):
                yield "the pattern repeats a choice"
        if not isinstance(node, Either):
            stack.extend(node.below())
            continue
        first = next((option for option in node.options if _is_given(option, match)), None)
        if first is None or not _took_part(first, bound):
            yield f"the match is another alternative of the pattern than {str(first)[:60]}"
        else:
            stack.append(first)


def _is_given(option: Node, match: Match) -> bool:
    """Whether the match has all arguments of an option."""
    stack, seen = [option], set[Node]()
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if isinstance(node, Arg) and node.name not in match.args:
            return False
        if isinstance(node, Either):
            if not any(_is_given(inner, match) for inner in node.options):
                return False
        elif not isinstance(node, (Many, Repeat)):
            stack.extend(node.below())
        elif isinstance(node, Repeat):
            stack.append(node.of)
    return True


def _took_part(node: Node, bound: Bound) -> bool:
    if isinstance(node, Arg):
        return node.name in bound.args
    if isinstance(node, Either):
        return any(_took_part(option, bound) for option in node.options)
    if isinstance(node, (Op, Item)):
        return (node.of if isinstance(node, Item) else node) in bound.parts
    return not node.grows or node in bound.values


# Attributes that follow from the types, that no importer leaves at another value, or that only
# allow something.
_FREE_ATTRS = frozenset({"out_dtype", "out_layout", "ties", "may_round_to"})


def _attributes(bound: Bound) -> Iterator[str]:
    """Attributes that the pattern leaves open, and that are not at their defaults; those that it
    states are as it says, or it would not match.
    """
    for node, call in bound.parts.items():
        assert isinstance(node, Op)
        stated = {name for name, value in node.attrs.items() if not callable(value)}
        usual = complete(node.kind, {name: node.attrs[name] for name in stated})
        for name, found in call.attrs.items():
            if name not in stated | _FREE_ATTRS and not _is_usual(name, found, usual, call):
                yield f"the pattern leaves {name} of {node.kind} open, here {found!r}"


def _is_usual(name: str, found: Any, usual: Mapping[str, Any], call: OpCall) -> bool:
    if name not in usual:
        return False
    rank = max(v.ndim for v in (*call.inputs, *call.outputs))
    wanted, is_reduction = usual[name], "keepdims" in KINDS[call.kind].attrs
    if name == "axis" and wanted is None and is_reduction:
        wanted = tuple(range(rank))  # as None is
        found = wanted if found is None else found
    return bool(in_one_spelling(name, wanted, rank) == in_one_spelling(name, found, rank))
