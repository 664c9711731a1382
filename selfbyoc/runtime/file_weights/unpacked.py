"""Weights that a file holds as they were before they were packed. Code in the file packs them while
the system loads it: before anybody can call a kernel, once, and for the processes that are forked
from this one, too.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from ...codegen.pack import packing_code
from ...codegen.parallel import at_once
from ...machine.features import architecture
from ...partition.original_weights import key_of
from ...partition.packings import LEAST, Packing
from ...tvm import empty, get_func, module_source, param_buffers, view_of
from ...tvm.export import write_object
from ...tvm.types import Module, PackedFunc, PrimFunc, Target
from .packing_code import Made
from .table import Table, Weight, weight_of

# Of which NumPy and DLPack have the same memory.
_PLAIN = {f"{kind}{bits}" for kind in ("int", "uint", "float") for bits in (8, 16, 32, 64)}

# LLVM's. GoogLeNet of levels has 30 functions: 2.4 s to compile (1.4 at level 0, 3.1 at 2), 0.027
# to run (0.035, 0.025). At 0 each object has a `__tvm_module_startup`, which are one too many.
_LEVEL = 1

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Candidate:
    """A weight of a table, and how it may be made."""

    place: int
    weight: Weight
    packing: Packing


def made_of(
    table: Table, packings: Mapping[str, Packing], target: Target, folder: Path
) -> tuple[list[Made], list[str]]:
    """The weights of a table that are made when the file is loaded, and the objects with the code
    for it; their originals are in the table then.
    """
    if not packings or architecture(target) != architecture("llvm"):
        return [], []  # what is made for another machine cannot be compared here
    worth = {f"selfbyoc_pack_{n}": g for n, g in enumerate(_worth(_candidates(table, packings)))}
    modules = _modules(worth)
    objects = [
        write_object(module, folder / f"selfbyoc_packing_{n}.o")
        for n, module in enumerate(dict.fromkeys(modules.values()))
    ]
    return [_made(table, c, name) for name in modules for c in worth[name]], objects


def _modules(worth: Mapping[str, Sequence[_Candidate]]) -> dict[str, Module]:
    """The code of functions by name, of those that make these weights: all in one module, which
    takes least, if nothing is wrong with any.
    """
    module = _code(worth) if worth else None
    if module is not None:
        return dict.fromkeys(worth, module)
    found = at_once([partial(_code, {name: group}) for name, group in worth.items()])
    return {n: module for n, module in zip(worth, found, strict=True) if module is not None}


def _worth(candidates: Iterable[_Candidate]) -> Iterator[list[_Candidate]]:
    """Those of one function each, where it saves enough: the largest first, which bring their
    originals into the file.
    """
    groups: dict[str, list[_Candidate]] = {}
    for found in candidates:
        groups.setdefault(found.packing.function.script(), []).append(found)
    there: set[int] = set()
    for group in sorted(groups.values(), key=_bytes, reverse=True):
        new = {c.packing.number: c.packing.original for c in group}
        brought = sum(view_of(new[each]).nbytes for each in new.keys() - there)
        if _bytes(group) - brought >= LEAST:
            there |= new.keys()
            yield group


def _bytes(group: Sequence[_Candidate]) -> int:
    return sum(c.weight.values.nbytes for c in group)


def _candidates(table: Table, packings: Mapping[str, Packing]) -> Iterator[_Candidate]:
    types = {key.rpartition(" ")[0] for key in packings}
    for place, weight in enumerate(table.weights):
        if f" {weight.values.dtype}{list(weight.shape)}" in types:
            packing = packings.get(key_of(weight.values, ""))
            if packing is not None and all(d in _PLAIN for _, d in _arguments(packing.function)):
                yield _Candidate(place, weight, packing)


def _code(groups: Mapping[str, Sequence[_Candidate]]) -> Module | None:
    """Functions that make these weights, to the bit, and need nothing of TVM's runtime, which is
    not there yet when the system loads a file. None where one does not.
    """
    functions = {name: group[0].packing.function for name, group in groups.items()}
    module, names = packing_code(functions, _LEVEL), ", ".join(groups)
    if _calls_runtime(module_source(module, "ll")):
        logger.debug("%s: TVM's runtime is needed; such weights stay packed in the file", names)
        return None
    made = {name: get_func(module, name) for name in groups}
    jobs = [partial(_makes, made[name], c) for name, group in groups.items() for c in group]
    if wrong := at_once(jobs).count(False):
        logger.debug("%s: others are made of %d weights; such stay packed", names, wrong)
        return None
    return module


def _calls_runtime(ir: str) -> bool:
    """Whether LLVM IR reads a variable with a function of TVM's runtime; it may declare all."""
    return any("@__TVM" in line for line in ir.splitlines() if not line.startswith("@"))


def _makes(pack: PackedFunc, found: _Candidate) -> bool:
    memory = [empty(shape, dtype) for shape, dtype in _arguments(found.packing.function)]
    pack(found.packing.original, *memory[1:])
    expected = np.ascontiguousarray(found.weight.values)
    return view_of(memory[-1]).tobytes() == expected.tobytes()


def _made(table: Table, found: _Candidate, name: str) -> Made:
    _, *between, _ = _arguments(found.packing.function)
    original = weight_of(view_of(found.packing.original))
    memory = tuple(weight_of(np.empty(shape, dtype)) for shape, dtype in between)
    return Made(found.place, table.place(original), name, memory)


def _arguments(function: PrimFunc) -> list[tuple[tuple[int, ...], str]]:
    """Shape and dtype of each."""
    return [(tuple(map(int, b.shape)), str(b.dtype)) for b in param_buffers(function)]
