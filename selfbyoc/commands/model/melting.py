"""`python -m selfbyoc melting MODEL.onnx`: the loop nest of each kernel, and what it saves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

from ...analysis.melting.report import Melting, melting
from ...common.files import write_text
from ...models.sizes import parse_sizes
from ...partition import check_target, partition_for_tefuse
from ...tvm.types import IRModule
from ..console import SafeConsole, within
from ..model_file import composites_in, imported, naming
from ..progress import step

WIDTH = 100  # the report's own; in a pipe or a file too


@dataclass(frozen=True)
class Request:
    """What the command line asks."""

    model: Path
    composite: str | None = None
    target: str | None = None
    time: bool = False
    json: Path | None = None
    shape: Sequence[str] = ()
    input: Sequence[str] = ()
    size: Sequence[str] = ()
    composites: Sequence[Path | str] = ()


def show(console: Console, asked: Request) -> None:
    """Print the melting report of an ONNX model; nothing is built unless times are asked for."""
    with step(f"reading the loops of {asked.model.name}"):
        found = _found(imported(asked.model, asked.shape, asked.input), asked)
    if not console.is_terminal:
        console = SafeConsole(file=console.file, width=WIDTH)
    for line in str(found).splitlines():
        console.print(_styled(within(console, line)), soft_wrap=True)
    if asked.json is not None:
        write_text(asked.json, found.to_json())


def _found(mod: IRModule, asked: Request) -> Melting:
    target = None if asked.target is None else check_target(asked.target)
    composites = composites_in(asked.composites)
    with naming(asked.model):
        parted = partition_for_tefuse(mod, target=target, composites=composites)
    return melting(parted, target, asked.time, asked.composite, parse_sizes(asked.size))


def _styled(line: str) -> Text:
    if line and not line.startswith(" ") and ": " in line:
        return Text(line, "bold")
    return Text(line, "cyan" if line.endswith(":") and line.startswith("  ") else "")
