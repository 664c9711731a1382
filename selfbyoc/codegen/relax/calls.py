"""Relax's calls of our kernels, at the time that TVM compiles the module with them."""

from __future__ import annotations

import sys
import threading
from dataclasses import dataclass
from typing import Any

from tvm import relax

from ... import errors
from ...tir.lowering import finished
from ...tvm import te, tir, tvm
from ...tvm.types import BlockBuilder, Expr, Module, Target
from ..external import External
from ..fallback import or_default
from ..records.lookup import with_record
from ..schedule import schedule_external
from ..target import same_machine


@dataclass(frozen=True)
class Built:
    """A kernel that RunCodegen got: what it was made of, for which target, and who chose that."""

    source: External
    target: Target
    told: bool


class Kernels:
    """What is known of the kernels that wait for tvm.compile, by the module that holds each.

    The symbol is not enough: equal functions have one, and are built for several targets, by
    several threads at once. A module's address is its own for as long as an IRModule refers to it,
    and whoever gets the address next is written down in its place. Only so many are remembered: a
    module that is coded and never compiled does not say so.
    """

    def __init__(self, most: int = 4096) -> None:
        self.most = most
        self._known: dict[int, Built] = {}
        self._lock = threading.Lock()

    def note(self, module: Module, built: Built) -> None:
        """Write a new kernel down; the oldest is forgotten for it."""
        with self._lock:
            self._known.pop(_address(module), None)
            self._known[_address(module)] = built
            if len(self._known) > self.most:
                del self._known[next(iter(self._known))]

    def find(self, mod: tvm.IRModule, symbol: str) -> Built | None:
        """What was noted of the kernel that a module's calls of this symbol reach; None for a
        symbol of somebody else's.
        """
        modules = list((mod.attrs or {}).get("external_mods", ()))
        for module in modules:
            built = self._known.get(_address(module))
            if built is not None and built.source.symbol == symbol:
                return built
        if modules and "_tefuse_" in symbol:
            raise errors.TargetError(
                f"{symbol}: {self.most} kernels were built since, and which target this one is for "
                f"is forgotten; expected tvm.compile soon after RunCodegen: run both again"
            )
        return None

    def forget(self, mod: tvm.IRModule) -> None:
        """A module is compiled and will not be asked about again."""
        for module in (mod.attrs or {}).get("external_mods", ()):
            self._known.pop(_address(module), None)


def _address(module: Module) -> int:
    return int(module.__chandle__())


kernels = Kernels()


def settled(builder: BlockBuilder, call: relax.Call) -> relax.Call:
    """Legalisation of a call of one of our kernels: how tvm.compile builds is known only here.

    RunCodegen runs before tvm.compile and is told neither the target nor the mode. A kernel that
    was built for the host for want of a better word is built again, for the target that the user
    compiles for. So is one that compiled code is to call: with `exec_mode="compiled"` 0.27 looks
    for it in what is imported into that code, and imports it beside it; in an exported library
    there is nothing to import.
    """
    kernel = kernels.find(builder.get(), str(getattr(call.args[0], "global_symbol", "")))
    target = tvm.target.Target.current(allow_none=True)
    if kernel is None or target is None:
        return call
    fits = same_machine(kernel.target, target)
    if kernel.told and not fits:
        raise errors.TargetError(
            f"{kernel.source.symbol}: built for {kernel.target}, but the module is compiled for "
            f"{target}"
        )
    if fits and not _is_compiled():
        _add_a_function(builder, target)
        return call
    return _call_of(_built_within(builder, kernel.source, target), call)


def _is_compiled() -> bool:
    """Whether this is relax.build(..., exec_mode="compiled"): only its frame knows the mode."""
    frame: Any = sys._getframe()
    while frame is not None:
        is_build = frame.f_globals.get("__name__") == "tvm.relax.vm_build"
        if is_build and "exec_mode" in frame.f_locals:
            return bool(frame.f_locals["exec_mode"] == "compiled")
        frame = frame.f_back
    return False


def _built_within(builder: BlockBuilder, source: External, target: Target) -> Expr:
    """The kernel as a function of the module itself, under a name that is not the first one's: in
    an exported library both would have one symbol.
    """
    if source.symbols:
        names = ", ".join(source.symbols)
        raise errors.TargetError(
            f"{source.symbol}: a kernel of symbolic sizes ({names}) runs on the virtual machine "
            f'(exec_mode="bytecode") and for the target of partitioning only; compile so, and '
            f"pass target= to partition_for_tefuse"
        )
    told = with_record(source, target, packed=True)
    _, scheduled = or_default(schedule_external, told, target)
    func = finished(scheduled.mod["main"], target).without_attr("global_symbol")
    if str(target.kind) == "c":  # the user's PassContext leaves vectors in, which no C has
        serial = tir.transform.VectorizeLoop(enable_vectorize=False)
        func = serial(tvm.IRModule({"main": func}))["main"]
    name = f"{source.symbol}_within"
    return builder.add_func(func.with_attr("tirx.is_scheduled", True), name)


def _call_of(function: Expr, call: relax.Call) -> relax.Call:
    """The same call, of a function of the module."""
    result = call.ty_args[0]
    types = list(result.fields) if isinstance(result, relax.TupleType) else [result]
    return relax.call_tir(function, call.args[1], types if len(types) > 1 else types[0])


def _add_a_function(builder: BlockBuilder, target: Target) -> None:
    """Something for TVM to compile, where our kernels are all there is: without a function of the
    module's own 0.27 makes an empty C source, and needs a compiler of the system to run it.
    """
    functions = builder.get().functions.values()
    if str(target.kind) != "llvm" or any(isinstance(f, tir.PrimFunc) for f in functions):
        return
    nothing = te.compute((1,), lambda i: tir.const(0, "int32"), name="nothing")
    func = te.create_prim_func([nothing]).without_attr("global_symbol")
    builder.add_func(func.with_attr("tirx.is_scheduled", True), "tefuse_nothing")
