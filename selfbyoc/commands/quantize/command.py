"""`selfbyoc quantize MODEL.onnx --data DIR`: a model in 8 bits, and what it loses and gains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console

from ...common.files import check_output
from ...errors import InputError
from ...models.batches import batches_in
from ...models.from_onnx import from_onnx
from ...models.onnx_model import read_onnx
from ...models.quantize import Made, Options, quantize
from ...models.shapes import fix_shapes, parse_shapes
from ...runtime.build import build
from ...runtime.library import Library
from ..bench.inputs import inputs_of
from ..bench.levels import FLOATS, LEVELS, Nearness, nearness, times
from ..build_progress import building
from ..console import PlainTable
from ..model.run import threads_text
from ..model_file import naming
from ..progress import step

if TYPE_CHECKING:
    import onnx

WORST, POOR = 3, 20.0  # activations that are named; decibels below which they are
MOST_COMPARED = 32  # batches


@dataclass(frozen=True)
class Request:
    """What the command line asks."""

    model: Path
    output: Path | None = None
    data: Path | None = None
    random: int | None = None
    dynamic: bool = False
    in_float: Sequence[str] = ()
    calibration: str = "minmax"
    seven_bits: bool = False
    seed: int = 0
    builds: bool = True
    shape: Sequence[str] = ()


def run(console: Console, asked: Request) -> None:
    """Quantise and write; then both models built, on the same inputs."""
    output = asked.output or Path(f"{asked.model.stem}.int8.onnx")
    check_output(output, [asked.model])
    with step(f"reading {asked.model.name}"):
        model = read_onnx(asked.model)
        batches = _batches(model, asked)
    options = Options(asked.dynamic, asked.in_float, asked.calibration, asked.seven_bits)
    with step(f"quantising {asked.model.name}"):
        made = quantize(asked.model, output, batches, options)
    _say(console, _made_lines(made, asked.model, output))
    if asked.builds:
        floats = _built(asked.model, batches[0], console)
        levels = _built(output, batches[0], console)
        compared = batches[:MOST_COMPARED]
        with step("comparing"):
            found = nearness(floats, levels, compared)
        console.print(_table(found, len(compared), asked))
        with step("timing"):
            latencies = times(floats, levels, batches[0])
        was, now = (latencies[name].milliseconds for name in (FLOATS, LEVELS))
        quiet = "" if all(each.quiet for each in latencies.values()) else ", while others ran"
        _say(console, [
            f"\n{was:.3g} ms a call in float, {now:.3g} ms in levels: {was / now:.2f} times as fast"
            f" on {threads_text()}{quiet}"
        ])  # fmt: skip


def _batches(model: onnx.ModelProto, asked: Request) -> list[dict[str, np.ndarray]]:
    if asked.data is not None:
        if asked.shape:
            raise InputError("--shape: the shapes are those of --data")
        return batches_in(asked.data, model)
    fixed = type(model)()
    fixed.CopyFrom(model)
    fix_shapes(fixed, parse_shapes(asked.shape), asked.model.name)
    return [inputs_of(fixed, asked.seed + n) for n in range(asked.random or 1)]


def _built(path: Path, batch: dict[str, np.ndarray], console: Console) -> Library:
    """Of the sizes of a batch."""
    shapes = {name: array.shape for name, array in batch.items()}
    with building(path.name, console), naming(path):
        return build(from_onnx(path, shapes))


def _made_lines(made: Made, model: Path, output: Path) -> list[str]:
    was, now = (path.stat().st_size / 1e6 for path in (model, output))
    lines = [
        f"{made.products} of {made.total} products in levels of 8 bits",
        f"wrote {output}: {now:.1f} MB of {was:.1f}",
    ]
    poor = [(name, loss) for name, loss in made.losses[:WORST] if loss < POOR]
    if poor:
        listed = ", ".join(f"{name} ({loss:.0f} dB)" for name, loss in poor)
        lines.append(f"furthest from float: {listed}; --float NODE keeps a node as it is")
    return lines


def _table(found: Sequence[Nearness], count: int, asked: Request) -> PlainTable:
    inputs = f"{count} made-up inputs" if asked.data is None else f"{count} of {asked.data}"
    table = PlainTable(
        title=f"\nResults in levels beside float, on {inputs}", title_justify="left",
        title_style="bold", show_edge=False, pad_edge=False,
    )  # fmt: skip
    table.add_column("output")
    for header in ("signal to noise", "largest difference", "same class"):
        table.add_column(header, justify="right")
    for each in found:
        same = "" if each.same is None else f"{each.same:.1%}"
        table.add_row(each.name, f"{each.decibels:.1f} dB", f"{each.largest:.2%}", same)
    return table


def _say(console: Console, lines: Sequence[str]) -> None:
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
