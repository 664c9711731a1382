"""`python -m selfbyoc ops`: the vocabulary, as a page for people and as types for editors."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterator

from ...ops.attr_words import ATTRIBUTES
from ...ops.kind import OpKind
from ...ops.reference import GENERATIONS, arguments, attributes, docstring, spelling, usage
from ...ops.vocabulary import FAMILIES, KINDS


def shown(name: str | None) -> str:
    """One op as `help(op.<name>)` has it; without a name a line for each, also a user's own."""
    if name is not None:
        kind = KINDS[name]
        return f"{usage(kind)}\n{textwrap.indent(docstring(kind), '    ')}"
    known = sorted(kind.name for kind in KINDS.values() if kind.is_written)
    return "\n".join(usage(KINDS[name]) for name in known)


def families() -> Iterator[tuple[str, list[OpKind]]]:
    """The built-in ops that patterns are written in, under the headings of their files."""
    for family in FAMILIES:
        yield (
            str(inspect.getdoc(family)).rstrip(".").partition(": ")[0],
            [kind for kind in family.KINDS if kind.is_written],
        )


def markdown() -> str:
    """The tables of docs/ops.md."""
    lines = []
    for title, kinds in families():
        lines += [f"## {title}", "", "| op | computes | Relay | Relax |", "|---|---|---|---|"]
        lines += [_row(kind) for kind in kinds]
        lines.append("")
    used = {name for _, kinds in families() for kind in kinds for name in attributes(kind)}
    lines += ["## Attributes", "", "| attribute | type | says |", "|---|---|---|"]
    lines += [
        f"| `{name}` | `{_cell(ATTRIBUTES[name].type)}` | {_cell(ATTRIBUTES[name].meaning)} |"
        for name in sorted(used)
    ]
    return "\n".join(lines)


def _row(kind: OpKind) -> str:
    cells = [f"`{usage(kind)}`", kind.doc, *(f"`{spelling(kind, g)}`" for g in GENERATIONS)]
    return f"| {' | '.join(map(_cell, cells))} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


_STUB = '''"""The vocabulary for type checkers and editors: `python -m selfbyoc ops --stub`."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

from .nodes import Many, Node

_T = TypeVar("_T")
_In: TypeAlias = Node | float
_Is: TypeAlias = _T | Callable[[Any], object]  # in a pattern a predicate, too

class Ops:
'''


def stub() -> str:
    """selfbyoc/language/typed_ops.pyi; types cannot know the ops that a user declares."""
    kinds = [kind for _, found in families() for kind in found]
    return _STUB + "\n".join(_method(kind) for kind in sorted(kinds, key=lambda k: k.name))


def _method(kind: OpKind) -> str:
    tensor = "Sequence[_In] | Many" if kind.inputs is None else "_In"
    given = ["self", *(f"{name}: {tensor}" for name in arguments(kind)), "/"]
    given += ["*"] if attributes(kind) else []
    given += [
        f"{name}: _Is[{ATTRIBUTES[name].type}] = {_literal(default)}"
        for name, default in attributes(kind).items()
    ]
    listed = "".join(f"        {each},\n" for each in given)
    doc = textwrap.indent(docstring(kind), "        ").lstrip()
    return f'    def {kind.name}(\n{listed}    ) -> Node:\n        """{doc}\n        """\n'


def _literal(default: object) -> str:
    return repr(default).replace("'", '"')
