"""The API reference, made from docstrings: `python tools/api.py > docs/api.md`.

griffe (pip install griffelib) reads signatures and docstrings from the sources: defaults stand as
they are written, both TVMs' halves are there, and nothing is imported. The docstrings' own form,
aligned columns of `name  what it is`, is turned into lists below.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import griffe

ROOT = Path(__file__).parents[1]
HEAD = """\
# The API

Every public name, from its docstring; made by `python tools/api.py > docs/api.md`. Ops of patterns
have [a page of their own](ops.md), commands `--help`. An array is of NumPy, or of anything with
DLPack; a shape is a tuple of integers, a dtype a string such as `"float32"`. Times are in seconds
unless the name says otherwise. What is raised is of `selfbyoc.errors`. A `tvm.IRModule` is Relax's
or Relay's, as the TVM that is installed has it.
"""
# Title -> (module, names): `selfbyoc` has all names of the first six.
GIVEN = "What functions of yours are given, and what is returned"
GROUPS: dict[str, tuple[str, list[str]]] = {
    "A model in, a library out": ("selfbyoc", [
        "from_onnx", "from_torch", "decoding", "build", "Library", "Decoder", "load", "seal",
        "partition_for_tefuse",
        "name_sizes", "report",
        "optimize_layouts", "unfuse", "host_target", "weights_once", "MeasuredGuard", "Trial",
        "Times",
    ]),
    "Composites": ("selfbyoc", [
        "Composite", "Case", "require", "Refused", "Kernel", "Machine", "Registry", "BUILTIN",
        "installed", "emit",
    ]),
    "Patterns": ("selfbyoc", [
        "op", "Node", "either", "many", "number", "elementwise", "repeat", "declare",
    ]),
    "Schedules": ("selfbyoc", [
        "choose", "melt", "each_op", "by_rules", "by_meta_schedule", "intrinsic", "T", "show",
        "transform_layout",
    ]),
    "Questions": ("selfbyoc", [
        "explain", "Explanation", "verify", "lint", "Finding", "melting", "Melting", "op_info",
        "OpInfo", "TensorInfo", "Source", "UNKNOWN", "raise_ops", "with_plain_layouts", "OpGraph",
    ]),
    "Tuning": ("selfbyoc", [
        "tune", "Tuning", "Outcome", "Progress", "apply_records", "Applied", "extract_tasks",
        "Task", "Tracker",
    ]),
    "selfbyoc.transform: passes": ("selfbyoc.transform", [
        "Partition", "ScheduleRest", "AttachOpInfo", "FuseTIR", "MoveLayouts", "RaiseOps", "lower",
        "op_info_attached", "extract_tasks",
    ]),
    GIVEN: ("selfbyoc", [
        "language.match.match.Match", "graph.OpCall", "graph.Value", "codegen.info.ops.Ops",
        "codegen.info.ops.OpView", "partition.report.Report", "runtime.library.Session",
        "analysis.verify.records.Verification",
    ]),
    "selfbyoc.errors": ("selfbyoc.errors", []),
}  # fmt: skip
_KINDS, _SELF = griffe.ParameterKind, ("self", "cls")
_ROW = re.compile(r"([a-z_]\w*(?:, [a-z_]\w*)*)\s{2,}(\S.*)")


def page() -> str:
    """The document."""
    package = griffe.load("selfbyoc", search_paths=[ROOT], resolve_aliases=True)
    parts = [HEAD]
    for title, (module, names) in GROUPS.items():
        parts.append(f"## {title}\n")
        inside = package if module == "selfbyoc" else package[module.partition(".")[2]]
        if not names:
            parts.append(_table(inside))
        parts += [_entry(_found(package, inside, name), title != GIVEN) for name in names]
    return "\n".join(parts)


def _table(module: Any) -> str:
    """Errors: a line each."""
    rows = ["| class | is a | when |", "|---|---|---|"]
    for name, found in module.members.items():
        if not found.is_alias and found.is_class:
            bases = ", ".join(f"`{base}`" for base in found.bases)
            rows.append(f"| `{name}` | {bases} | {_line(found.docstring.value)} |")
    return "\n".join([*rows, ""])


def _line(docstring: str) -> str:
    return " ".join(docstring.split())


def _found(package: Any, inside: Any, name: str) -> Any:
    """What a public name stands for: `selfbyoc` has those of api.py."""
    holder = package["api"] if inside is package and "." not in name else inside
    found = holder[name]
    return found.final_target if found.is_alias else found


def _entry(found: Any, is_called: bool) -> str:
    """Signature, docstring, and of a class what can be called and read."""
    lines = [f"### {found.name}", ""]
    if is_called and not found.is_attribute:
        lines += ["```py", _signature(found), "```", ""]
    assert found.docstring, f"{found.path} has no docstring"
    lines.append(markdown(found.docstring.value))
    members = list(_members(found)) if found.is_class else []
    lines += ["", "It has:", "", *members] if members else []
    return "\n".join([*lines, ""])


def _signature(found: Any) -> str:
    """On several lines where it is long; a class that is only raised or returned has none."""
    given = _parameters(found)
    if found.is_class and not given:
        bases = ", ".join(map(str, found.bases))
        return f"class {found.name}({bases})" if bases else f"class {found.name}"
    result = f" -> {found.returns}" if found.is_function and found.returns else ""
    line = f"{found.name}({', '.join(given)}){result}"
    if len(line) <= 100:
        return line
    return "\n".join([f"{found.name}(", *(f"    {each}," for each in given), f"){result}"])


def _parameters(found: Any) -> list[str]:
    """As they are written; a dataclass has private fields too, which nobody gives."""
    texts, before = [], None
    for p in found.parameters:
        if p.name.startswith("_") or p.name in _SELF:
            continue
        if before is _KINDS.positional_only is not p.kind:
            texts.append("/")
        if p.kind is _KINDS.keyword_only and before not in (
            _KINDS.keyword_only,
            _KINDS.var_positional,
        ):
            texts.append("*")
        default = (
            "" if p.default is None or _stars(p) else f" = {p.default}".replace("dict()", "{}")
        )
        texts.append(f"{'*' * _stars(p)}{p.name}: {p.annotation}{default}")
        before = p.kind
    return texts


def _members(found: Any) -> Iterator[str]:
    """What is public: methods, properties, and fields that a comment explains."""
    for name, member in found.members.items():
        if (name.startswith("_") and name != "__call__") or name == "transform_module":
            continue
        called = "" if member.is_attribute else _call(member)
        shown = f"`{called}`" if name == "__call__" else f"`.{name}{called}`"
        if member.docstring is not None:
            text = textwrap.indent(markdown(member.docstring.value), "    ").lstrip()
            yield f"- {shown}: {text}"
        elif comment := _comment(found, member):
            yield f"- {shown}: {comment}"


def _comment(found: Any, member: Any) -> str:
    """Beside a field, or in the line before."""
    if not member.is_attribute or "instance-attribute" not in member.labels:
        return ""
    lines = found.lines_collection[found.filepath]
    beside = lines[member.lineno - 1].partition("  # ")[2]
    before = lines[member.lineno - 2].strip()
    return (
        beside or before.removeprefix("# ") if before.startswith("# ") or beside else ""
    ).strip()


def _call(method: Any) -> str:
    names = [f"{'*' * _stars(p)}{p.name}" for p in method.parameters if p.name not in _SELF]
    return f"({', '.join(names)})"


def _stars(parameter: Any) -> int:
    return {_KINDS.var_positional: 1, _KINDS.var_keyword: 2}.get(parameter.kind, 0)


def markdown(docstring: str) -> str:
    """A docstring: columns become a list, what is indented an example."""
    return "\n\n".join(map(_paragraph, re.split(r"\n\s*\n", textwrap.dedent(docstring).strip())))


def _paragraph(text: str) -> str:
    lines = text.splitlines()
    if all(line.startswith("    ") for line in lines):
        return f"```py\n{textwrap.dedent(text)}\n```"
    if not _ROW.fullmatch(lines[0]):
        return " ".join(line.strip() for line in lines)
    rows: list[str] = []
    for line in lines:
        row = _ROW.fullmatch(line)
        if row:
            names = ", ".join(f"`{name}`" for name in row[1].split(", "))
            rows.append(f"- {names}: {row[2]}")
        else:
            rows[-1] += " " + line.strip()
    return "\n".join(rows)


if __name__ == "__main__":
    sys.stdout.write(page())
