"""What a user reads of an op: signature, meaning, attributes, and its name in both TVMs; all of it
from its OpKind.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from typing import Any, TypeVar

from ..tvm.types import Attr
from .attr_words import ATTRIBUTES
from .kind import OpKind

Function = TypeVar("Function", bound=Callable[..., Any])

_LETTERS = ("x", "y", "z")
GENERATIONS = ("relay", "relax")


class _Given:
    """The default of an attribute that has none."""

    def __repr__(self) -> str:
        return "..."


GIVEN = _Given()


def arguments(kind: OpKind) -> tuple[str, ...]:
    """The names of the tensors that it takes; one stands for the list, where that is what it
    takes.
    """
    if kind.takes:
        return tuple(kind.takes.split())
    if kind.inputs is None:
        return ("tensors",)
    if kind.inputs <= len(_LETTERS):
        return _LETTERS[: kind.inputs]
    return tuple(f"x{n}" for n in range(kind.inputs))


def told_by(compute: object, inputs: int | None, doc: str) -> dict[str, Attr]:
    """An OpKind's `doc` and `takes` from a user's compute: the first line that it says of itself
    unless there is a `doc`, and the names of its tensors, where it has any.
    """
    if not callable(compute):  # told elsewhere
        return {}
    doc = doc or (inspect.getdoc(compute) or "").partition("\n")[0]
    try:
        parameters = inspect.signature(compute).parameters.values()
    except ValueError:  # written in C, without a signature
        return {"doc": doc}
    by_name = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [p.name for p in parameters if p.kind in by_name][: inputs or 0]
    return {"doc": doc, "takes": " ".join(names) if len(names) == inputs else ""}


def attributes(kind: OpKind) -> dict[str, Attr]:
    """The attributes and their defaults; GIVEN where there is none."""
    return {**kind.attrs, **dict.fromkeys(kind.read_attrs, GIVEN)}


def signature(kind: OpKind) -> inspect.Signature:
    """Of `op.<kind>`: tensors by position, attributes by name."""
    tensors = [
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in arguments(kind)
    ]
    attrs = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
        for name, default in attributes(kind).items()
    ]
    return inspect.Signature([*tensors, *attrs])


def usage(kind: OpKind) -> str:
    """`conv2d(x, weight, *, strides=(1, 1), ...)`."""
    shown = [f"{name}={default!r}" for name, default in attributes(kind).items()]
    return f"{kind.name}({', '.join([*arguments(kind), *(['*'] if shown else []), *shown])})"


def spelling(kind: OpKind, generation: str) -> str:
    """Which ops of a TVM are read as this one; else how it is written there, if at all."""
    forms = kind.relay if generation == "relay" else kind.relax
    if forms:
        return ", ".join(form.name for form in forms)
    told = kind.spelled.get(generation, "")
    return told or ("" if kind.means is None else "its program of other ops") or "none"


def meaning(kind: OpKind, name: str) -> str:
    """What one attribute of it says; of a user's own nothing is known."""
    return ATTRIBUTES[name].meaning if name in ATTRIBUTES else ""


def docstring(kind: OpKind) -> str:
    """For `help(op.<kind>)`."""
    lines = textwrap.wrap(kind.doc, 88)
    if shown := attributes(kind):
        lines += [
            "",
            "Attributes (in a pattern: a value, or a predicate, that the model's must be):",
        ]
        for name, default in shown.items():
            value = "no default" if default is GIVEN else repr(default)
            text = f"{name} ({value}): {meaning(kind, name)}".removesuffix(": ")
            lines += textwrap.wrap(text, 88, initial_indent="  ", subsequent_indent="      ")
    lines += ["", *(f"{g.capitalize()}: {spelling(kind, g)}" for g in GENERATIONS)]
    return "\n".join(lines).strip("\n")


def described(function: Function, kind: OpKind) -> Function:
    """A function that builds an op, with that op's name, signature and help."""
    function.__name__ = kind.name
    function.__qualname__ = f"op.{kind.name}"
    function.__doc__ = docstring(kind)
    function.__signature__ = signature(kind)  # type: ignore[attr-defined]
    return function
