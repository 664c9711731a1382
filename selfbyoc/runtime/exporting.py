"""A library as a file: kernels, weights, and the note that `load` reads."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..common.files import expanded, written
from ..errors import InputError, one_line
from ..machine import host
from ..machine.features import architecture
from ..tvm import GENERATION, target_dict, tvm
from ..tvm.types import Executable
from ..version import __version__
from .file_weights.at_the_end import put_at_end
from .file_weights.generation import files
from .file_weights.source import Source, write
from .file_weights.unpacked import made_of
from .generation import runtime
from .half import packed as packed_halves
from .integrity import sealed
from .note import Note, write_note
from .system_compiler import check_compiler

if TYPE_CHECKING:
    from .library import Library


def versions() -> dict[str, str]:
    """What builds here."""
    llvm = tvm.target.codegen.llvm_version_major()
    return {
        "selfbyoc": __version__, "tvm": tvm.__version__, "generation": GENERATION,
        "llvm": str(llvm),
    }  # fmt: skip


def export(library: Library, path: str | Path, packed: bool) -> None:
    """Write a library that was built here. It needs a C++ compiler; see `export_library`."""
    check_compiler("export_library")
    with written(expanded(path)) as part, tempfile.TemporaryDirectory() as folder:
        notes = [write_note(Path(folder), note_of(library))]
        try:
            _export(library, part, Path(folder), notes, packed)
        except RuntimeError as err:  # so TVM hands on what the linker said
            raise InputError(f"{path} cannot be written: {_said(err)}") from err
        sealed(part)


def _export(library: Library, part: Path, folder: Path, notes: list[str], packed: bool) -> None:
    """Weights have pages of their own where the system's loader maps them."""
    native, in_halves = library.native, library.weights == "float16"
    how: dict[str, object] = {}
    if sys.platform.startswith("linux"):
        # What is called in the file is in the file: another library may have the same names.
        # TVM describes each kernel to debuggers, of no source: a tenth of a small network's file.
        # Stubs take the compiler half as long as at level 2; loops that widen halves need that.
        level = "-O2" if in_halves else "-O1"
        how["options"] = [level, "-Wl,-Bsymbolic", "-Wl,--strip-debug"]
        native, table = files.apart(native, library._lowered)
        if table.stubs:
            packings = {} if packed or in_halves else library._packings
            made, objects = made_of(table, packings, library.target, folder)
            links = partial(_linked, native, part, [*notes, *objects], how)
            source = partial(write, folder, table, files.ABI, in_halves, made)
            marks = architecture(library.target) == "x86_64"
            if not (marks and links(source(marks=True))):
                links(source(marks=False))
            return
    if in_halves:
        how["fpack_imports"] = packed_halves
    native.export_library(str(part), addons=notes, **how)


def _linked(
    native: Executable, part: Path, addons: Sequence[str], how: dict[str, object], source: Source
) -> bool:
    """Link a library with its weights; whether they are where its mark was."""
    native.export_library(str(part), addons=[*addons, source.path], **how)
    return put_at_end(part, source.mark, source.pieces)


def note_of(library: Library) -> Note:
    """What a file of a library says of itself."""
    target, report = library.target, library.report
    architecture, features = ("", None) if target is None else host.needed(target)
    return Note(
        None if target is None else target_dict(target), library.inputs, library.outputs,
        library.versions, None if report is None else report.data(),
        runtime.python_functions(library.native), library.weights, library.index_bounds,
        library.sizes, library.memory, library.least_sizes, library.bounded_by, architecture,
        features, index_places=library.index_places,
    )  # fmt: skip


def _said(err: RuntimeError) -> str:
    """The linker's own line."""
    told = (line for line in str(err).splitlines() if "ld:" in line or ": error:" in line)
    return next(told, one_line(err))


def weights_once(native: Executable) -> Executable:
    """What relay.build returned, without TVM 0.17's second copy of every weight, as `build` does
    it; an Executable of Relax as it is: it holds each weight once.
    """
    return runtime.weights_once(native)
