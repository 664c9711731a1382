"""Relax: what was compiled becomes code that runs, in this process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial

from ...codegen.parallel import at_once
from ...tvm.types import Executable, Module
from ..system_compiler import check_compiler


def linked(native: Executable) -> Module:
    """The module that the virtual machine runs; 0.27 compiles C sources for it."""
    if _has_sources(native.mod):
        check_compiler("to call C sources")
    at_once([partial(_assemble, m) for m in _inside(native.mod)])
    return native.jit()


def _inside(module: Module) -> Iterator[Module]:
    """The modules of LLVM that a module of the runtime imports."""
    for inner in module.imports:
        if inner.kind == "llvm":
            yield inner
        yield from _inside(inner)


def _assemble(module: Module) -> None:
    """Have a module make its machine code, as it does when it is first asked for a function: the
    virtual machine asks one kernel after the other, half a second for twenty.
    """
    with suppress(AttributeError):  # no function has this name
        module.get_function("")


def _has_sources(module: Module) -> bool:
    """Whether a module of the runtime is C source, or imports some."""
    return module.kind == "c" or any(map(_has_sources, module.imports))
