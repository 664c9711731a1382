"""`selfbyoc show MODEL`: what it takes and returns, its kernels, what it is built for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from ...codegen.target import host_target
from ...errors import InputError
from ...ir.generation import ir as reader
from ...machine import host
from ...partition import check_target, is_partitioned, partition_for_tefuse
from ...partition.report import Report, report
from ...printable import counted
from ...runtime.exporting import versions
from ...runtime.interface import bounded_by, least_sizes, signature_of, sizes_of
from ...runtime.loading import report_of, target_of
from ...runtime.note import Note, read_note
from ...runtime.signature import Tensor
from ...tvm import target_dict
from ..model_file import LIBRARIES, composites_in, imported, naming
from ..progress import step
from ..tables import taken_table
from .size_tables import OpenSizes, size_table
from .tensor_table import tensor_table


@dataclass(frozen=True)
class Request:
    """What the command line asks."""

    model: Path
    target: str | None = None
    shape: Sequence[str] = ()
    input: Sequence[str] = ()
    composites: Sequence[Path | str] = ()
    size: Sequence[str] = ()


def run(console: Console, asked: Request) -> None:
    """Print it; nothing is built, and no code of a library is loaded."""
    is_library = asked.model.suffix.lower() in LIBRARIES
    note, told = _of_library(asked) if is_library else _of_model(console, asked)
    size = f", {asked.model.stat().st_size / 1e6:.1f} MB" if is_library else ""
    for line in (f"{asked.model.name}{size}", *_facts(asked.model, note, is_library)):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    for title, tensors in (("inputs", _named(note)), ("outputs", note.outputs)):
        console.print(tensor_table(title, tensors))
    if note.sizes:
        opened = OpenSizes(note.sizes, note.least_sizes, note.bounded_by)
        console.print(size_table(opened, note.inputs))
    if told is not None:
        console.print(taken_table(told))
        console.print(f"\n{kernels_line(told)}", markup=False, highlight=False)


def _of_library(asked: Request) -> tuple[Note, Report | None]:
    for name in ("target", "shape", "size", "input", "composites"):
        if getattr(asked, name):
            raise InputError(f"--{name}: it is for a model; {asked.model.name} is built already")
    note = read_note(asked.model)
    if not note.versions:
        raise InputError(f"{asked.model}: another tool wrote it; it does not say what it is")
    return note, report_of(asked.model, note)


def _of_model(console: Console, asked: Request) -> tuple[Note, Report]:
    target = host_target() if asked.target is None else check_target(asked.target)
    composites = composites_in(asked.composites)
    with step(f"reading {asked.model.name}"):
        mod = imported(asked.model, asked.shape, asked.input, asked.size)
    with step(f"partitioning {asked.model.name}"), naming(asked.model):
        if not is_partitioned(mod):
            mod = partition_for_tefuse(mod, target=target, composites=composites)
        with reader.by_name():
            inputs, outputs = signature_of(mod)
    note = Note(
        target_dict(target), inputs, outputs, versions(), sizes=sizes_of(mod),
        least_sizes=least_sizes(mod), bounded_by=bounded_by(mod),
    )  # fmt: skip
    return note, report(mod)


def _facts(path: Path, note: Note, is_library: bool) -> list[str]:
    built = "built by" if is_library else "here"
    told = note.versions
    by = f"selfbyoc {told.get('selfbyoc')}, TVM {told.get('tvm')} ({told.get('generation')})"
    target = target_of(path, note)
    missing = host.cannot_run(target) if target is not None else ""
    lines = [f"  {built}: {by}, LLVM {told.get('llvm')}"]
    if target is not None:
        lines.append(f"  target: {host.named(target)}")
    if note.weights != "float32":
        lines.append(f"  weights: {note.weights} in the file, float32 when computing")
    if note.python:
        lines.append(f"  {needs_python(note.python)}")
    return [*lines, *([f"  not for this machine: {missing}"] if missing else [])]


def _named(note: Note) -> list[Tensor]:
    """The inputs of a library, symbolic sizes by their names."""
    names = {place: name for name, (_, places) in note.sizes.items() for place in places}
    return [
        (tensor, tuple(names.get((n, axis), e) for axis, e in enumerate(shape)), dtype)  # type: ignore[misc]
        for n, (tensor, shape, dtype) in enumerate(note.inputs)
    ]


def needs_python(functions: Sequence[str]) -> str:
    """Who can run a file that calls these."""
    return f"needs Python with tvm.relax: {', '.join(functions)}"


def kernels_line(found: Report | None) -> str:
    """`3 kernels of composites hold 9 of 12 ops; TVM has 1 flatten, 2 pad`."""
    if found is None:
        return "its kernels are not known"
    inside = sum(1 for _, _, owner in found.ops if owner)
    left = ", ".join(f"{count} {kind}" for kind, count in sorted(found.left.items()))
    count = len(found.matched)
    return (
        f"{counted(count, 'kernel')} of composites hold{'s' * (count == 1)} "
        f"{inside} of {len(found.ops)} ops; left to TVM: {left or 'nothing'}"
    )
