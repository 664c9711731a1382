"""What a module's `main` takes and returns, as a library says it: names, types, symbolic sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..ir.symbols import Range
from ..partition.source_names import names_of
from ..tvm import GENERATION
from ..tvm.types import IRModule
from .signature import Tensor
from .sizes import Size

if TYPE_CHECKING:
    from ..graph import Value


def signature_of(mod: IRModule) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """The inputs and the outputs of a module's `main`, with the names of the source model."""
    from ..ir.generation import ir

    inputs, outputs = ir.parameters(mod["main"]), ir.results(mod["main"])
    source = names_of(mod)
    names = [v.name for v in inputs]
    if GENERATION == "relax" and _fit(source.inputs, inputs):  # Relay's executor goes by names
        names = list(source.inputs)
    told = source.outputs if _fit(source.outputs, outputs) else _numbered(len(outputs))
    return (
        tuple((n, v.shape, v.dtype) for n, v in zip(names, inputs, strict=True)),
        tuple((n, v.shape, v.dtype) for n, v in zip(told, outputs, strict=True)),
    )


def _fit(names: Sequence[str], values: Sequence[Value]) -> bool:
    return len(names) == len(values) == len(set(names))


def _numbered(count: int) -> list[str]:
    return ["output"] if count == 1 else [f"output_{n}" for n in range(count)]


def sizes_of(mod: IRModule) -> dict[str, Size]:
    """The symbols of a module's `main`, by name."""
    if GENERATION == "relay":
        from ..ir.relay import any

        names = any.names_of(mod["main"])
        symbols = dict.fromkeys(names.values())
        return {name: (None, tuple(at for at in names if names[at] == name)) for name in symbols}
    from ..ir.relax.symbols import casts, places, ranges

    within = ranges(mod["main"])
    found = {**places(mod["main"]), **casts(mod["main"])}
    return {name: (within.get(name, Range()).most, at) for name, at in found.items()}


def least_sizes(mod: IRModule) -> dict[str, int]:
    """The least sizes of a module's symbols, where that is more than 0."""
    if GENERATION == "relay":
        return {}
    from ..ir.relax.symbols import places, ranges

    known = places(mod["main"])
    found = ranges(mod["main"]).items()
    return {name: each.least for name, each in found if each.least and name in known}


def bounded_by(mod: IRModule) -> dict[str, str]:
    """Who says what the largest sizes of a module's symbols are, as far as that is known."""
    if GENERATION == "relay":
        return {}
    from ..ir.relax.symbols import bounded_by, places

    known = places(mod["main"])
    return {name: by for name, by in bounded_by(mod["main"]).items() if name in known}
