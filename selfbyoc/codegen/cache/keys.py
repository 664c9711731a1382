"""What a kernel depends on, as text and as a key."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from ...common.probes import SERVES
from ...common.threads import core_count
from ...graph import OpGraph, Value
from ...machine import host
from ...tvm import GENERATION, structural_hash, target_dict, tvm
from ...tvm.types import Attrs, PrimFunc, Target

_PACKAGE = Path(__file__).parent.parent.parent
_STARTED = time.time()
# Rooms that change a function after its script is read for the key.
_LOWERING = ("common", "machine", "tir", "tvm")


def digest(facts: Iterable[object]) -> str:
    """One key of JSON data."""
    return hashlib.sha256(json.dumps(list(facts), sort_keys=True).encode()).hexdigest()


def of_functions(functions: Sequence[PrimFunc], target: Target, config: Mapping[str, bool]) -> str:
    """The key of the machine code of scheduled functions.

    How they are lowered it does not say: that is in the sources.
    """
    code = [fact for func in functions for fact in _code(func)]
    facts = [*code, target_dict(target), core_count(), dict(config), *compiler()]
    return digest(["code", _LOWERED_BY, *facts])


def of_code(func: PrimFunc) -> str:
    """The key of a scheduled function alone, by which a tuning record knows it again."""
    return digest(["function", *_code(func)])


def _code(func: PrimFunc) -> tuple[str, int]:
    """A script names everything but the last digits of floats; a structural hash has these."""
    for name in [str(n) for n in func.attrs.keys()]:  # noqa: SIM118 (no Python dict)
        if name in ("global_symbol", "Composite") or name.startswith("tefuse."):
            func = func.without_attr(name)  # no code comes of them
    return func.script(), int(structural_hash(func))


def of_inputs(names: Iterable[str], graph: OpGraph, attrs: Attrs, target: Target) -> str | None:
    """The key of all that a built-in composite's scheduled function comes from.

    None while the package's sources change: what runs may be older than what is on disk.
    """
    code = _sources()
    if code is None:
        return None
    return digest(
        ["inputs", list(names), graph_data(graph), dict(attrs), target_dict(target), code,
         _environment(), host.cpu(), core_count(), host.cache_bytes(), *compiler()]
    )  # fmt: skip


def graph_data(graph: OpGraph) -> list[object]:
    """A graph without the names that its IR gave to values and ops."""
    numbers: dict[Value, int] = {}

    def number(value: Value) -> int:
        return numbers.setdefault(value, len(numbers))

    inputs = [[number(v), *_type(v)] for v in graph.inputs]
    ops = [
        [c.kind, repr(sorted(c.attrs.items())), bool(c.sources),
         [[number(v), *_type(v)] for v in c.inputs], [[number(v), *_type(v)] for v in c.outputs]]
        for c in graph.ops
    ]  # fmt: skip
    return [inputs, ops, [number(v) for v in graph.outputs]]


def _type(value: Value) -> list[object]:
    own = [list(value.shape), value.dtype, value.is_constant, repr(value.scalar), value.seven_bits]
    return [*own, value.held, value.as_held]


@cache
def compiler() -> tuple[str, ...]:
    """Which TVM and LLVM compile."""
    info = {str(k): str(v) for k, v in tvm.support.libinfo().items()}
    library = _library_file()
    stat = library.stat() if library else None
    built = f"{stat.st_size} {stat.st_mtime_ns}" if stat else ""
    llvm = tvm.target.codegen
    triple, major = str(llvm.llvm_get_system_triple()), str(llvm.llvm_version_major())
    return GENERATION, tvm.__version__, json.dumps(info, sort_keys=True), built, triple, major


def _library_file() -> Path | None:
    """TVM's own shared library: a build from source changes without a new version."""
    folder = Path(tvm.__file__).parent
    places = (folder, folder / "lib", folder.parent.parent / "build")
    names = ("libtvm.so", "libtvm_compiler.so", "libtvm.dylib")
    return next((p / n for p in places for n in names if (p / n).exists()), None)


@cache
def _sources() -> str | None:
    """A hash of this package's code."""
    paths = sorted(_PACKAGE.rglob("*.py"))
    return None if any(p.stat().st_mtime > _STARTED for p in paths) else _hash(paths)


def _hash(paths: Iterable[Path]) -> str:
    hashed = hashlib.sha256()
    for path in paths:
        hashed.update(str(path.relative_to(_PACKAGE)).encode() + b"\0" + path.read_bytes())
    return hashed.hexdigest()


def lowering_files() -> list[Path]:
    """All that a machine code's key takes for what lowers it."""
    rooms = [path for room in _LOWERING for path in sorted((_PACKAGE / room).rglob("*.py"))]
    return [_PACKAGE / "codegen" / "lower.py", *rooms]


_LOWERED_BY = _hash(lowering_files())  # now, as they are imported now


def _environment() -> dict[str, str]:
    """The switches of this package. Those of the cache, and who was asked, change no kernel; what a
    record says is in the kernel's attributes.
    """
    aside = ("SELFBYOC_CACHE", "SELFBYOC_RECORDS", SERVES)
    return {
        k: v for k, v in os.environ.items() if k.startswith("SELFBYOC_") and not k.startswith(aside)
    }
