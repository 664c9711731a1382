"""A pattern function called on its own argument names: what it returns, and how its arguments are
named.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence

from ..errors import CompositeError
from .nodes import Arg, Node, Program, as_node, reachable
from .raised import in_words


def numbered_names(outputs: Sequence[Node]) -> set[str]:
    """The names of the arguments that get a number each, without it."""
    return set().union(*(node.numbered() for root in outputs for node in reachable(root)))


def trace(owner: str, function: Program) -> tuple[tuple[Node, ...], tuple[str, ...]]:
    """Call a pattern function on its own argument names: its outputs, all names in order."""
    names = _names(owner, function)
    try:
        result = function(*map(Arg, names))
        outputs = result if isinstance(result, tuple) else (result,)
        return tuple(map(as_node, outputs)), names
    except CompositeError as err:
        raise CompositeError(f"composite {owner}: {err}") from err
    except Exception as err:  # whatever a user's function raises is its pattern's error
        text = f"its pattern raised {type(err).__name__}: {in_words(err)}"
        raise CompositeError(f"composite {owner}: {text}") from err


_ODD = {
    inspect.Parameter.VAR_POSITIONAL: "*{} stands for any number of tensors; name each",
    inspect.Parameter.VAR_KEYWORD: "**{} stands for any number of tensors; name each",
    inspect.Parameter.KEYWORD_ONLY: "{} is given by name alone; a tensor comes by position",
}


def _names(owner: str, function: Program) -> tuple[str, ...]:
    """The arguments of a pattern: each is one tensor, called by its name everywhere."""
    parameters = inspect.signature(function).parameters.values()
    for each in parameters:
        if each.kind in _ODD:
            text = _ODD[each.kind].format(each.name)
            raise CompositeError(f"composite {owner}: pattern: its argument {text}")
    if not parameters:
        raise CompositeError(f"composite {owner}: the pattern has no argument")
    return tuple(each.name for each in parameters)


def named_parameters(function: Callable[..., object]) -> list[str]:
    """The parameters that are passed by name; `*args` and `**kwargs` take any."""
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError as err:  # written in C
        text = f"{function!r} has no names of arguments to pass them by; wrap it in a function"
        raise CompositeError(text) from err
    return [p.name for p in parameters if p.kind not in kinds]
