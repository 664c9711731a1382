"""The hook `relax.ext.tefuse`: all external functions of a module -> their runtime modules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from tvm import relax

from ...graph import OpGraph
from ...ir.relax import read as read_graph
from ...ir.relax.symbols import at, usual_sizes
from ...tvm import tvm
from ...tvm.types import Attrs, Function, Module, Target
from ..attributes import told_graph
from ..external import TARGET, External, main_last, read_attrs
from ..fallback import noting_what_ends
from ..progress import all_made
from ..records.lookup import with_record
from ..target import agree
from .calls import Built, kernels


def composites(func: relax.Function) -> list[str]:
    """The names of the composites in an external function, in order."""
    values = (b.value for block in func.body.blocks for b in block.bindings)
    locals_ = [v for v in values if isinstance(v, relax.Function) and v.attrs]
    return [str(f.attrs["Composite"]) for f in locals_ if "Composite" in f.attrs.keys()]  # noqa: SIM118


def read(func: relax.Function) -> OpGraph:
    """The raw graph of an external function."""
    with at(func, usual_sizes(func, {})):
        return read_graph(func, raw=True)


def source_of(func: relax.Function, symbol: str, attrs: Attrs) -> External:
    """An external function and our attributes of it -> what the hook works on."""
    sizes = usual_sizes(func, {})

    def read_at(sizes: Mapping[str, int]) -> OpGraph:
        with at(func, sizes):
            return told_graph(read_graph(func, raw=True), attrs)

    found = External(symbol, tuple(composites(func)), read_at(sizes), attrs)
    if not sizes:
        return found
    sizes = main_last(sizes, found.graph)
    return replace(found, symbols=tuple(sizes), sizes=sizes, read_at=read_at)


def build_target() -> Target | None:
    """The target in force around RunCodegen, if there is one."""
    return tvm.target.Target.current(allow_none=True)


def codegen(functions: list[Function], options: object, constant_names: object) -> list[Module]:
    """RunCodegen calls this once with all external functions; equal ones are one by then."""
    read_ones = [_read(func) for func in functions]
    modules = all_made([(recorded, built.target) for built, recorded in read_ones])
    for module, (built, _) in zip(modules, read_ones, strict=True):
        kernels.note(module, built)
    return modules


@contextmanager
def kernels_ahead(
    kernels: Callable[[], Sequence[External]], target: Target, is_static: bool
) -> Iterator[None]:
    """Around a build: nothing to do, `codegen` gets all kernels at once."""
    yield


def _read(func: relax.Function) -> tuple[Built, External]:
    """What a kernel is made of and for which target; and it with the record of tuning."""
    attrs = read_attrs(func.attrs)
    symbol = str(func.attrs["global_symbol"])
    target = agree(attrs.get(TARGET), build_target(), symbol)
    with noting_what_ends(symbol, target):
        source = source_of(func, symbol, attrs)
    told = TARGET in attrs or build_target() is not None
    return Built(source, target, told), with_record(source, target, packed=True)
