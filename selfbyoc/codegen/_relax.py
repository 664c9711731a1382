"""The hook `relax.ext.tefuse`: all external functions of a module -> their runtime modules."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import tvm_ffi
from tvm import relax

from .. import errors
from .._tvm import register_func, tvm
from ..graph import OpGraph
from ..ir._relax import read as read_graph
from ..wiring import wired
from ._relax_builders import builders_of_each_thread
from .lower import TARGET, External, external, finished, lower, read_attrs, schedule_external
from .target import agree, same_machine


@dataclass(frozen=True)
class _Built:
    """A kernel that RunCodegen got: what it was made of, for which target, and who chose that."""

    source: External
    target: Any
    told: bool


class _Kernels:
    """What is known of the kernels that wait for tvm.compile, by the module that holds each.

    The symbol is not enough: equal functions have one, and are built for several targets, by
    several threads at once. A module's address is its own for as long as an IRModule refers to it,
    and whoever gets the address next is written down in its place. Only so many are remembered: a
    module that is coded and never compiled does not say so.
    """

    def __init__(self, most: int = 4096) -> None:
        self.most = most
        self._known: dict[int, _Built] = {}
        self._lock = threading.Lock()

    def note(self, module: Any, built: _Built) -> None:
        """Write a new kernel down; the oldest is forgotten for it."""
        with self._lock:
            self._known.pop(_address(module), None)
            self._known[_address(module)] = built
            if len(self._known) > self.most:
                del self._known[next(iter(self._known))]

    def find(self, mod: tvm.IRModule, symbol: str) -> _Built | None:
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


def _address(module: Any) -> int:
    return int(module.__chandle__())


kernels = _Kernels()


def composites(func: relax.Function) -> list[str]:
    """The names of the composites in an external function, in order."""
    values = (b.value for block in func.body.blocks for b in block.bindings)
    locals_ = [v for v in values if isinstance(v, relax.Function) and v.attrs]
    return [str(f.attrs["Composite"]) for f in locals_ if "Composite" in f.attrs.keys()]  # noqa: SIM118


def read(func: relax.Function) -> OpGraph:
    """The raw graph of an external function."""
    return read_graph(func, raw=True)


def build_target() -> Any | None:
    """The target in force around RunCodegen, if there is one."""
    return tvm.target.Target.current(allow_none=True)


def codegen(functions: list[Any], options: Any, constant_names: Any) -> list[Any]:
    """RunCodegen calls this once with all external functions."""
    modules = []
    for func in functions:
        attrs = read_attrs(func.attrs)
        symbol = str(func.attrs["global_symbol"])
        target = agree(attrs.get(TARGET), build_target(), symbol)
        source = external(symbol, composites(func), read(func), attrs)
        modules.append(lower(wired.with_record(source, target, packed=True), target))
        told = TARGET in attrs or build_target() is not None
        kernels.note(modules[-1], _Built(source, target, told))
    return modules


def _settle_target(builder: Any, call: relax.Call) -> relax.Call:
    """Legalisation of a call of one of our kernels: tvm.compile's target is known only here.

    RunCodegen runs before tvm.compile and is not told the target. A kernel that was built for the
    host for want of a better word is built again, for the target that the user compiles for.
    """
    kernel = kernels.find(builder.get(), str(getattr(call.args[0], "global_symbol", "")))
    target = tvm.target.Target.current(allow_none=True)
    if kernel is None or target is None or same_machine(kernel.target, target):
        return call
    if kernel.told:
        raise errors.TargetError(
            f"{kernel.source.symbol}: built for {kernel.target}, but the module is compiled for "
            f"{target}"
        )
    _, scheduled = schedule_external(wired.with_record(kernel.source, target, packed=True), target)
    func = finished(scheduled.mod["main"], target).without_attr("global_symbol")
    fresh = builder.add_func(func.with_attr("tirx.is_scheduled", True), kernel.source.symbol)
    result = call.ty_args[0]
    types = list(result.fields) if isinstance(result, relax.TupleType) else [result]
    return relax.call_tir(fresh, call.args[1], types if len(types) > 1 else types[0])


def register() -> None:
    """Make the hook known to TVM, and our errors to its FFI, which knows others as RuntimeError."""
    builders_of_each_thread()
    for error in errors.ALL:
        tvm_ffi.register_error(f"selfbyoc.{error.__name__}", error)
    register_func("relax.ext.tefuse", codegen, override=True)
    if tvm.ir.Op.get("relax.call_dps_packed").get_attr("FLegalize") is None:
        # An extern function has no shape, and LegalizeOps passes over calls with such arguments.
        tvm.ir.register_op_attr("relax.call_dps_packed", "RequiresArgumentShapes", False)
        tvm.ir.register_op_attr("relax.call_dps_packed", "FLegalize", _settle_target)
