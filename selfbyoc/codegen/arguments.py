"""The arguments of a match: what stands before one, who reads it, and its `pack` function."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from ..errors import ComputeError
from ..graph import OpCall, OpGraph, Value
from ..tvm import te
from ..tvm.types import Tensor

if TYPE_CHECKING:
    from ..language.match.match import Match


def argument_chain(graph: OpGraph, value: Value) -> list[OpCall]:
    """The ops made up by canonicalising between a graph input and an argument, first to last."""
    chain: list[OpCall] = []
    while (call := graph.producer(value)) is not None and not call.sources:
        chain.insert(0, call)
        value = call.inputs[0]
    return chain


def run_pack(
    pack: Callable[..., Tensor],
    tensor: Tensor,
    match: Match,
    name: str,
    plan: object,
    *,
    ahead: bool,
) -> Tensor:
    """A composite's `pack` function, which may ask for the op that reads its argument; a kernel's
    gets the plan, too.

    That argument is constant, for it, if it is packed ahead of time and not at every call.
    """
    given = 1 if match.composite.kernel is None else 2
    args = (tensor, plan)[:given]
    if not takes_reader(pack, given):
        return _tensor(pack(*args), match, name)
    reader, position = reader_of(match, name)
    inputs = list(reader.inputs)
    inputs[position] = replace(inputs[position], is_constant=ahead)
    return _tensor(pack(*args, replace(reader, inputs=tuple(inputs))), match, name)


def reader_of(match: Match, name: str) -> tuple[OpCall, int]:
    """The op that reads an argument, and which of its inputs that is."""
    return next(
        (call, i)
        for call in match.ops
        for i in range(len(call.inputs))
        if match.role(call, i) == name
    )


def _tensor(found: Tensor, match: Match, name: str) -> Tensor:
    """What a `pack` returned, which is a user's function."""
    if isinstance(found, te.Tensor):
        return found
    owner = f"composite {match.composite.name}: its pack of {name!r}"
    raise ComputeError(f"{owner} returned {type(found).__name__}; expected a tensor of te")


def takes_reader(pack: Callable[..., Tensor], given: int = 1) -> bool:
    """Whether it must be given the reader, beside so many arguments."""
    try:
        parameters = inspect.signature(pack).parameters.values()
    except ValueError:  # written in C, without a signature
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in positional and p.default is p.empty for p in parameters) > given
