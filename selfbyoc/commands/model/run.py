"""`selfbyoc run model.so --input x=x.npy`: a library on arrays."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError
from zipfile import BadZipFile

import numpy as np
from rich.console import Console

from ...common.files import check_output, written
from ...common.threads import count
from ...errors import InputError, did_you_mean, one_line
from ...models.shapes import Shape, parse_shapes
from ...runtime.library import Library
from ...runtime.loading import load
from ...runtime.signature import Tensor, checked
from ...runtime.timing import latency
from ..bench.inputs import made_up
from ..model_file import LIBRARIES
from ..open_inputs import shapes_at
from ..progress import step
from .library_options import Named
from .tensor_table import tensor_table

WINDOWS, BUDGET = 15, 3.0  # of 20 ms; seconds


@dataclass(frozen=True)
class Request:
    """What the command line asks."""

    file: Path
    input: Sequence[Named] = ()
    output: Path | None = None
    seed: int = 0
    shape: Sequence[str] = ()
    size: Sequence[str] = ()


def run(console: Console, asked: Request) -> None:
    """Print inputs, outputs and time; write the outputs where that is asked for."""
    if asked.file.suffix.lower() not in LIBRARIES:
        raise InputError(f"{asked.file} is no library; build one: selfbyoc compile {asked.file}")
    with step(f"loading {asked.file}"):
        library = load(asked.file)
    inputs, told = _inputs(library, asked)
    names = _file_names([name for name, _, _ in library.outputs])
    to = [] if asked.output is None else [asked.output / name for name in names]
    for path in to:
        check_output(path, [asked.file, *(given.path for given in asked.input)])
    with step(f"running {asked.file}"):
        outputs = library(inputs)
    console.print(tensor_table(
        "inputs", _typed(library.inputs, list(inputs.values())),
        ("from", told), ("range", [_range(a) for a in inputs.values()]),
    ))  # fmt: skip
    named = _typed(library.outputs, outputs)
    console.print(tensor_table("outputs", named, ("range", [_range(a) for a in outputs])))
    with step(f"timing {asked.file}"):
        found = latency({"": library.prepared(inputs)}, WINDOWS, BUDGET)[""]
    quiet = "" if found.quiet else ", while other programs ran"
    lines = [f"\n{found.milliseconds:.3g} ms a call on {threads_text()}{quiet}"]
    for path, array in zip(to, outputs, strict=bool(to)):
        _write(path, array)
        lines.append(f"wrote {path}")
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def threads_text() -> str:
    """`2 threads`."""
    return "one thread" if count() == 1 else f"{count()} threads"


def _inputs(library: Library, asked: Request) -> tuple[dict[str, np.ndarray], list[str]]:
    """Every input, and where each is from."""
    shapes, files = parse_shapes(asked.shape), {i.name: i.path for i in asked.input}
    if len(files) < len(asked.input):
        raise InputError("--input: an input has two files")
    if both := sorted(files.keys() & shapes.keys()):
        raise InputError(f"--shape: input {both[0]!r} has the shape of its file, {files[both[0]]}")
    shapes = {**shapes_at(library, asked.size, files), **shapes}
    names = [name for name, _, _ in library.inputs]
    for option, given in (("--input", files), ("--shape", shapes)):
        for name in given:
            if name not in names:
                near = did_you_mean(name, names)
                raise InputError(f"{option}: no input {name!r}; expected {', '.join(names)}{near}")
    rng, found, told = np.random.default_rng(asked.seed), {}, []
    for tensor in library.inputs:
        name = tensor[0]
        if name in files:
            found[name] = checked(_read(files[name]), tensor)
        else:
            hint = f", or give --input '{name}=FILE.npy'"
            found[name] = checked(made(rng, tensor, shapes.get(name), hint), tensor)
        told.append(str(files.get(name, f"seed {asked.seed}")))
    return found, told


def made(
    rng: np.random.Generator, tensor: Tensor, given: Shape | None, hint: str = ""
) -> np.ndarray:
    """Values of an input of this shape; `hint` is what else one can give."""
    name, shape, dtype = tensor
    if given is None and None in shape:
        example = "x".join(str(e or 1) for e in shape)
        raise InputError(
            f"input {name!r} has dynamic sizes: fix them, for example --shape '{name}={example}'"
            f"{hint}"
        )
    return made_up(rng, [int(e or 1) for e in given or shape], np.dtype(dtype), None)


# Of np.load: an array's header is Python, which it reads by tokenize and ast.literal_eval.
_BAD = (
    BadZipFile, EOFError, LookupError, MemoryError, OSError, RecursionError, SyntaxError,
    TokenError, TypeError, ValueError,
)  # fmt: skip


def _read(path: Path) -> np.ndarray:
    try:
        found = np.load(path, allow_pickle=False)
    except _BAD as err:
        raise InputError(f"{path} is no .npy file that can be read: {one_line(err)}") from err
    if not isinstance(found, np.ndarray):
        raise InputError(f"{path}: expected one array (.npy), found an archive of them")
    return found


def _typed(tensors: Sequence[Tensor], arrays: Sequence[np.ndarray]) -> list[Tensor]:
    """The sizes that dynamic ones have now."""
    pairs = zip(tensors, arrays, strict=True)
    return [(name, array.shape, str(array.dtype)) for (name, _, _), array in pairs]


def _range(array: np.ndarray) -> str:
    if not array.size:
        return "empty"
    if array.dtype.kind not in "biuf":
        array = array.astype("float32")
    bad = "" if np.isfinite(array).all() else ", not all finite"
    return f"{array.min():.4g} to {array.max():.4g}{bad}"


def _file_names(names: Sequence[str]) -> list[str]:
    """A name of a model's may hold anything: letters, digits and a few others stay."""
    plain = [re.sub(r"[^A-Za-z0-9_-]", "_", name)[:100] or "_" for name in names]
    unique = len(set(plain)) == len(plain)
    return [f"{name if unique else f'{n}-{name}'}.npy" for n, name in enumerate(plain)]


def _write(path: Path, array: np.ndarray) -> None:
    with written(path) as part, part.open("wb") as file:
        np.save(file, array)
