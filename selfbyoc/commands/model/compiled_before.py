"""What was compiled before is not compiled again: the same model with the same options, by the same
sources and packages, on the same machine. TVM is not even imported for it.

An entry of the compile cache says where the library is and what its bytes are. The file stays where
`compile` wrote it; it is taken if it is still the same to the bit, and else compiled anew.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import platform
import re
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from rich.console import Console

from ...codegen.cache.place import folder
from ...codegen.cache.store import Store
from ...common.digests import digest_and_places, digest_of
from ...common.files import opened, written
from ...common.optional import does_not_serve
from ...common.probes import SERVES, ahead
from ...errors import InputError
from ...version import __version__

_PACKAGE = Path(__file__).parent.parent.parent
_PACKAGES = ("numpy", "onnx", "onnxruntime", "apache-tvm-ffi")  # that read a model, beside TVM
_NO_OPTIONS = ("model", "output", "times", "run", "before", "known_as")
# The name of a file beside an ONNX model, as the model has it: a key, how long it is, the name.
_LOCATION, _BESIDE = b"location", re.compile(rb"\n\x08location\x12([\x80-\xff]{,4}[\x00-\x7f])")
_LONGEST = 4352  # bytes of a path, and what is before it
_MANY = 100_000  # names: each tensor has one
_CPU = ("model name", "flags")  # as Linux has them


@dataclass(frozen=True)
class Known:
    """The key of a library, and the files that it is to be made of, as they were then."""

    key: str
    files: Mapping[Path, object]


def served(args: argparse.Namespace, console: Console) -> bool:
    """Whether the library that these arguments ask for was there, and is now where they say;
    `args.known_as` becomes what it will be known by, if it was not.
    """
    start, place = time.perf_counter(), folder()
    args.known_as = None if place is None else _key(args)
    known = None
    if place is not None and args.known_as is not None and not args.times:
        known = _known(Store(place).get(args.known_as.key))
    if known is None:
        if args.model.suffix.lower() == ".onnx":
            ahead(partial(does_not_serve, "onnxruntime"))  # asked as soon as the model is read
        return False
    output = args.output or Path(f"{args.model.stem}.so")
    _bring(known, output)
    size, seconds = known["size"] / 1e6, time.perf_counter() - start
    told = f"{output}: {size:.1f} MB, as it was compiled before, {seconds:.1f} s"
    first, *more = known["lines"]
    for line in (first, told, *more):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    return True


def remember(known_as: Known | None, library: Path, lines: Sequence[str]) -> None:
    """Note what was written, and what was told of it; not where a file changed meanwhile."""
    place = folder()
    if known_as is None or place is None or _stats(known_as.files) != known_as.files:
        return
    found = {
        "library": str(library.resolve()), "size": library.stat().st_size,
        "sha256": digest_of(library), "lines": list(lines),
    }  # fmt: skip
    Store(place).put(known_as.key, json.dumps(found), {"note": True})


def _known(text: str | None) -> dict[str, Any] | None:
    """What an entry says of a library that is still there as it was written."""
    if text is None:
        return None
    found: dict[str, Any] = json.loads(text)
    library = Path(found["library"])
    try:
        is_same = library.stat().st_size == found["size"] and digest_of(library) == found["sha256"]
    except (OSError, InputError):
        return None
    return found if is_same else None


def _bring(known: Mapping[str, Any], output: Path) -> None:
    """Have the library where it shall be."""
    library = Path(known["library"])
    if output.resolve() == library:
        return
    with written(output) as part:
        shutil.copyfile(library, part)
        if digest_of(part) != known["sha256"]:
            raise InputError(f"{library} changes while it is copied to {output}")


def _key(args: argparse.Namespace) -> Known | None:
    """All that decides what is compiled; None where that is not known without compiling: composites
    and tuning records of the user's.
    """
    if args.model.suffix.lower() != ".onnx" or args.composites or _named("SELFBYOC_RECORDS"):
        return None
    stats = _stats([args.model])
    digest, places = digest_and_places(args.model, _LOCATION)
    names = _beside(args.model, places)
    if names is None:
        return None
    paths = [args.model.parent / name for name in names]
    try:
        files = stats | _stats(paths)
        beside = [[name, digest_of(path)] for name, path in zip(names, paths, strict=True)]
    except (OSError, InputError, ValueError):  # whoever reads the model says what is wrong
        return None
    options = {name: str(value) for name, value in vars(args).items() if name not in _NO_OPTIONS}
    facts = [
        "library", __version__, sys.version, digest, args.model.name,
        beside, sorted(options.items()), *_sources(), *_packages(), *_machine(), *_environment(),
    ]  # fmt: skip
    return Known(hashlib.sha256(json.dumps(facts).encode()).hexdigest(), files)


def beside(model: Path) -> list[Path]:
    """The files with weights beside an ONNX model; none of what is none, or does not say."""
    if model.suffix.lower() != ".onnx":
        return []
    try:
        names = _beside(model, digest_and_places(model, _LOCATION)[1])
    except InputError:  # whoever reads the model says what is wrong
        return []
    return [model.parent / name for name in names or ()]


def _beside(model: Path, places: Sequence[int]) -> list[str] | None:
    """The files with weights beside a model, which are named behind these places; None where its
    bytes do not say for certain.
    """
    if len(places) > _MANY:
        return None
    found = set()
    with opened(model) as file:
        for place in places:
            file.seek(max(0, place - 2))
            told = _BESIDE.match(file.read(_LONGEST))
            if told is None:
                return None
            length = sum((byte & 127) << 7 * n for n, byte in enumerate(told[1]))
            found.add(told.string[told.end() : told.end() + length])
    try:
        return sorted(name.decode() for name in found)
    except UnicodeDecodeError:
        return None


def _stats(paths: Iterable[Path]) -> dict[Path, object]:
    """What changes with a file."""
    return {path: (path.stat().st_ino, *_stat(path)) for path in paths}


def _sources() -> Iterator[object]:
    """This package's files, by when they were written."""
    for path in sorted(_PACKAGE.rglob("*.py")):
        yield [str(path.relative_to(_PACKAGE)), *_stat(path)]


def _packages() -> Iterator[object]:
    """TVM as `import tvm` would find it, and what else has a say."""
    spec = importlib.util.find_spec("tvm")
    if spec is not None and spec.origin is not None:
        place = Path(spec.origin).parent
        libraries = (*place.glob("lib/*.so"), *place.glob("*.so"), *place.glob("../../build/*.so"))
        for path in sorted((Path(spec.origin), *libraries)):
            yield [str(path), *_stat(path)]
    for name in _PACKAGES:
        try:
            yield [name, metadata.version(name)]
        except metadata.PackageNotFoundError:
            yield [name, None]


def _machine() -> Iterator[object]:
    """The CPU, the cores that this process may run on, the caches."""
    yield [platform.machine(), platform.system(), len(os.sched_getaffinity(0))]
    try:
        lines = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
        yield [line for line in lines if line.startswith(_CPU)]
        sizes = Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")
        yield [path.read_text() for path in sorted(sizes)]
    except OSError as err:
        yield str(err)


def _environment() -> Iterator[object]:
    """The switches of this package, but who was asked whether a package of others works."""
    for name, value in sorted(os.environ.items()):
        if name.startswith("SELFBYOC_") and name not in ("SELFBYOC_CACHE", SERVES):
            yield [name, value]


def _named(variable: str) -> bool:
    return bool(os.environ.get(variable))


def _stat(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns
