"""`selfbyoc compile MODEL -o model.so`."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from ...common.files import check_output
from ...common.parts import Times, begins, heard_by
from ...common.probes import ahead
from ...errors import SelfbyocWarning
from ...partition import check_target
from ...runtime.build import build
from ...runtime.generation import runtime
from ...runtime.interface import signature_of
from ...runtime.system_compiler import cannot_compile
from ..build_progress import building
from ..model_file import composites_in, imported, naming
from ..progress import step
from ..tables import times_table
from .compiled_before import Known, remember
from .show import kernels_line, needs_python
from .size_tables import OpenSizes, size_table


@dataclass(frozen=True)
class Request:
    """What the command line asks."""

    model: Path
    output: Path | None = None
    target: str | None = None
    shape: Sequence[str] = ()
    input: Sequence[str] = ()
    composites: Sequence[Path | str] = ()
    weights: str = "float32"
    group: int = 32
    activations: str = "float32"
    requantize: str = "stepwise"
    symmetric: bool = False
    size: Sequence[str] = ()
    times: bool = False
    known_as: Known | None = None  # by whoever asks for the same again


def run(console: Console, asked: Request) -> None:
    """Read, build and write; what is open and about how long it takes, then two lines about what
    came of it, and maybe a table of where the time went.
    """
    times = Times()
    with heard_by(times), warned() as said:
        output, lines, is_open = _run(console, asked)
    if not said and not is_open:  # these would have to be said again
        remember(asked.known_as, output, lines)
    times("")
    if asked.times:
        console.print("", times_table(times.seconds))


@contextmanager
def warned() -> Iterator[list[str]]:
    """Our warnings that are shown inside."""
    found: list[str] = []
    usual = warnings.showwarning

    def show(message: Warning | str, *args: Any, **named: Any) -> None:
        if isinstance(message, SelfbyocWarning):
            found.append(str(message))
        usual(message, *args, **named)

    warnings.showwarning = show
    try:
        yield found
    finally:
        warnings.showwarning = usual


def _run(console: Console, asked: Request) -> tuple[Path, list[str], bool]:
    """The file, what is said of it beside its size, and whether it has open sizes."""
    start, name = time.perf_counter(), asked.model.name
    target = None if asked.target is None else check_target(asked.target)
    composites = composites_in(asked.composites)
    output = asked.output or Path(f"{asked.model.stem}.so")
    check_output(output, [asked.model])
    ahead(cannot_compile)  # of use when all else is done
    begins("reading the model")
    with step(f"reading {name}"):
        mod = imported(asked.model, asked.shape, asked.input, asked.size)
    opened = OpenSizes.of(mod)
    if opened.sizes:
        console.print(size_table(opened, signature_of(mod)[0]), "")
    with building(name, console), naming(asked.model):
        library = build(
            mod,
            target,
            composites=composites,
            weights=asked.weights,
            group=asked.group,
            activations=asked.activations,
            requantize=asked.requantize,
            symmetric=asked.symmetric,
        )
    begins("writing the library")
    with step(f"writing {output}"):
        library.export_library(output)
    size, seconds = output.stat().st_size / 1e6, time.perf_counter() - start
    calls = runtime.python_functions(library.native)
    lines = [kernels_line(library.report), *([needs_python(calls)] if calls else [])]
    for line in (lines[0], f"wrote {output}: {size:.1f} MB, {seconds:.1f} s", *lines[1:]):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    return output, lines, bool(opened.sizes)
