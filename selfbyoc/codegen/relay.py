"""The hook `relay.ext.tefuse`: one external function -> one runtime module."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from types import FrameType
from typing import Any

from tvm import relay

from ..errors import TargetError
from ..graph import OpGraph
from ..ir.relay import read as read_graph
from ..ir.relay import read_raw_at, sizes_read
from ..ir.relay.hollow import is_hollow, whole
from ..ir.relay.walk import postorder
from ..tvm import make_target, tvm
from ..tvm.types import Attrs, Module, Target
from .attributes import told_graph
from .external import TARGET, External, external, main_last, read_attrs
from .fallback import noting_what_ends
from .progress import all_made, made
from .records.lookup import with_record
from .target import agree

CHECK = "tefuse.check"  # of a function of runtime/relay/checks.py: its PrimFunc
# By symbol: the kernels of a relay.build that are there before it.
_ahead: ContextVar[Mapping[str, Module] | None] = ContextVar("selfbyoc_ahead", default=None)


def composites(func: relay.Function) -> list[str]:
    """The names of the composites in an external function, in order."""
    return [
        str(e.op.attrs["Composite"])
        for e in postorder(func.body)
        if isinstance(e, relay.Call)
        and isinstance(e.op, relay.Function)
        and "Composite" in e.op.attrs.keys()  # noqa: SIM118
    ]


def read(func: relay.Function) -> OpGraph:
    """The raw graph of an external function."""
    sizes = sizes_read(func)
    return read_raw_at(func, sizes) if sizes else read_graph(func, raw=True)


def source_of(func: relay.Function, symbol: str, attrs: Attrs) -> External:
    """An external function and our attributes of it -> what the hook works on."""
    sizes = sizes_read(func)
    if not sizes:
        return external(symbol, composites(func), read(func), attrs)

    def read_at(sizes: Mapping[str, int]) -> OpGraph:
        return told_graph(read_raw_at(func, sizes), attrs)

    names, graph = tuple(composites(func)), read_at(sizes)
    sizes = main_last(sizes, graph)
    return External(symbol, names, graph, attrs, symbols=tuple(sizes), sizes=sizes, read_at=read_at)


def typed(func: relay.Function) -> relay.Function:
    """relay.build hands the function over without the types of its body."""
    if is_hollow(func):
        return whole(func)
    bare = relay.Function(func.params, func.body, func.ret_type)
    done = relay.transform.InferType()(tvm.IRModule.from_expr(bare))["main"]
    return relay.Function(done.params, done.body, done.ret_type, done.type_params, func.attrs)


def codegen(func: relay.Function) -> Module:
    """TVM calls this once for each external function; its symbol must be in the module."""
    symbol = str(func.attrs["global_symbol"])
    if CHECK in func.attrs.keys():  # noqa: SIM118
        kernel = func.attrs[CHECK].with_attr("global_symbol", symbol)
        return tvm.build(kernel, target=build_target(), name=symbol)
    attrs = read_attrs(func.attrs)
    done = _modules_of_this_build()
    if symbol in (ahead := _ahead.get() or {}):
        return ahead[symbol]
    if symbol not in done:
        target = agree(attrs.get(TARGET), build_target(), symbol)
        with kept_targets():
            func = typed(func)
            with noting_what_ends(symbol, target):
                source = source_of(func, symbol, attrs)
            source = replace(source, is_checked=_build() is not None)
            source = with_record(source, target, packed=True)
            done[symbol] = made(source, target)
    return done[symbol]


@contextmanager
def kernels_ahead(
    kernels: Callable[[], Sequence[External]], target: Target, is_static: bool
) -> Iterator[None]:
    """Around a relay.build: its kernels are made before it, several at once. TVM would ask for one
    after the other. Not of open sizes: those the virtual machine calls, and looks at no argument.
    """
    if not is_static:
        yield
        return
    sources = kernels()
    targets = [agree(s.attrs.get(TARGET), target, s.symbol) for s in sources]
    with kept_targets():
        modules = all_made(list(zip(sources, targets, strict=True)))
    token = _ahead.set({s.symbol: made for s, made in zip(sources, modules, strict=True)})
    try:
        yield
    finally:
        _ahead.reset(token)


def _modules_of_this_build() -> dict[str, Module]:
    """Symbol -> module, for as long as one relay.build lasts.

    Equal functions have one symbol, and TVM asks for each once, but for the AOT executor: it notes
    the memory in use on every function (AnnotateUsedMemory, 0.17), so that they differ again.
    """
    build = _build()
    return {} if build is None else vars(build).setdefault("tefuse_modules", {})


def _build() -> Any | None:
    """The relay.build that calls the hook. None for the Relay VM, which alone calls kernels with
    arguments that nobody has looked at.
    """
    for frame in _callers():
        if frame.f_globals.get("__name__") == "tvm.relay.build_module" and "self" in frame.f_locals:
            return frame.f_locals["self"]
    return None


def _callers() -> Iterator[FrameType]:
    frame: Any = sys._getframe()
    while frame is not None:
        yield frame
        frame = frame.f_back


@contextmanager
def kept_targets() -> Iterator[None]:
    """An error while lowering leaves targets on TVM's stack (0.17), and unwinding over them ends
    the process.
    """
    top = tvm.target.Target.current(allow_none=True)
    try:
        yield
    except BaseException:  # Ctrl-C unwinds as well
        while (now := tvm.target.Target.current(allow_none=True)) is not None and not now.same_as(
            top
        ):
            now.__exit__(None, None, None)
        raise


def build_target() -> Target | None:
    """The target that the user builds for.

    Under TVM 0.17 `Target.current()` in the hook is the made-up `ext_dev`. The Relay VM has the
    real target one below it on the stack of targets; relay.build has it nowhere but in its own
    frame, so that is read.
    """
    below = _below_ext_dev()
    if below is not None:
        return below
    for frame in _callers():
        if (
            frame.f_globals.get("__name__") == "tvm.relay.build_module"
            and "raw_targets" in frame.f_locals
        ):
            targets = [t for t in frame.f_locals["raw_targets"] if str(t.kind) != "ext_dev"]
            if targets:
                return make_target(targets[0])
    return None


def _below_ext_dev() -> Target | None:
    popped = []
    try:
        while (current := tvm.target.Target.current(allow_none=True)) is not None:
            if str(current.kind) != "ext_dev":
                return current
            current.__exit__(None, None, None)
            popped.append(current)
        return None
    finally:
        for target in reversed(popped):
            target.__enter__()


__all__ = ["TargetError", "build_target", "codegen", "composites", "read"]
