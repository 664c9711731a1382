"""The table of PrimFuncs in other layouts as ops again: `python tools/raised_ops.py > FILE`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1] / "tests"
sys.path[:0] = [str(TESTS / "support"), str(TESTS.parent)]

HEAD = """\
# PrimFuncs in other layouts, as ops again

Each case of each built-in composite as `selfbyoc.raise_ops` sees its PrimFunc: as stacked, after
the composite's own schedule, and stacked with an input, a weight, the output, or one of each, in
another layout by `transform_layout`. Weights are unpacked. Made with {tvm} by
`tools/raised_ops.py`. A test builds every cell by TVM alone and compares its numbers
([test_round_trip.py](../../{up}tests/codegen/raising/test_round_trip.py)).

- `yes`: every attribute is in the new layouts, and no op was added.
- `yes, 2 changes`: so many transposes and reshapes stand around ops that have no form in the layout
  of their tensors (`materialize=False` refuses there), or between two ops that disagree.
- `no (1)`: refused, for the reason below. Layouts that do not divide a case's sizes are left out.

"""


def rows(composite: Any) -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """The cases of a composite: name, and for each cell its role, its layouts and what became of
    it.
    """
    from raising import cells, kernel_of, transformed  # type: ignore[import-not-found]

    from selfbyoc import host_target
    from selfbyoc.tvm import GENERATION

    for case in composite.cases:
        if GENERATION not in case.generations:
            continue
        stacked, scheduled = kernel_of(composite, case).schedule(host_target())
        found = [
            ("stacked", "", _raised(stacked.func)),
            ("scheduled", "", _raised(scheduled.mod["main"])),
        ]
        for cell in cells(stacked.func):
            made = _raised(transformed(stacked.func, cell))
            found.append((cell.role, cell.layout, made))
        yield case.name, found


def _raised(func: Any) -> str:
    """What becomes of a function."""
    from selfbyoc import emit, op_info, raise_ops, with_plain_layouts
    from selfbyoc.errors import SelfbyocError

    try:
        graph = raise_ops(func)
        emit(with_plain_layouts(graph))
    except SelfbyocError as err:
        return f"{type(err).__name__}: {err}"
    known = {info.name for info in op_info(func)}
    added = sum(call.name not in known for call in graph.ops)
    return "yes" if not added else f"yes, {added} change{'s' * (added > 1)}"


def section(composite: Any) -> str:
    """The part of the page that is of one composite."""
    roles = ("stacked", "scheduled", "input", "weight", "output", "all")
    lines = [f"## {composite.name}", "", f"| case | {' | '.join(roles)} |", "|---" * 7 + "|"]
    reasons: dict[str, int] = {}

    def said(layout: str, found: str) -> str:
        if not found.startswith("yes"):
            number = reasons.setdefault(found, len(reasons) + 1)
            found = f"no ({number})"
        return f"{layout}: {found}" if layout else found

    for name, found in rows(composite):
        of_role = {
            role: "<br>".join(said(layout, made) for r, layout, made in found if r == role)
            for role in roles
        }
        lines.append(f"| `{name}` | {' | '.join(of_role[role] for role in roles)} |")
    lines += ["", *(f"({number}) {reason}\n" for reason, number in reasons.items())]
    return "\n".join(lines) + "\n"


def page() -> str:
    """The whole."""
    from selfbyoc import BUILTIN
    from selfbyoc.tvm import GENERATION

    head = HEAD.format(
        tvm="TVM 0.27 (Relax)" if GENERATION == "relax" else "TVM 0.17 (Relay)",
        up="" if GENERATION == "relax" else "../",
    )
    known = [c for c in BUILTIN if any(GENERATION in case.generations for case in c.cases)]
    return head + "\n".join(map(section, known))


if __name__ == "__main__":
    sys.stdout.write(page())
